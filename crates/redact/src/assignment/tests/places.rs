//! The places where people and programs write passwords: settings, languages, commands, prose, logs, chat.

use super::{Dice, taken};

/// Texts in which `§` stands for a password.
#[rustfmt::skip] // One place a line.
const PLACES: &[&str] = &[
    // Settings
    "DB_PASSWORD=§\n",
    "DB_PASSWORD=\"§\"\n",
    "export PGPASSWORD='§'\n",
    "password: §\n",
    "password: \"§\"\n",
    "  password: '§'\n",
    "{\"password\": \"§\"}",
    "{\"user\":\"app\",\"password\":\"§\",\"port\":1}",
    "{\\\"password\\\": \\\"§\\\"}",
    "password = \"§\"\n",
    "spring.datasource.password=§\n",
    "spring.datasource.password = §\n",
    "[client]\nuser=app\npassword=§\n",
    "<password>§</password>",
    "<property name=\"password\" value=\"§\"/>",
    "<add key=\"DbPassword\" value=\"§\" />",
    "<string name=\"password\">§</string>",
    "<key>password</key>\n<string>§</string>",
    "<connection user=\"app\" password=\"§\" />",
    "env:\n  - name: DB_PASSWORD\n    value: \"§\"\n",
    "environment:\n  - DB_PASSWORD=§\n",
    "environment:\n  MYSQL_ROOT_PASSWORD: §\n",
    "ENV DB_PASSWORD=§\n",
    "ENV DB_PASSWORD §\n",
    "ARG ADMIN_PASSWORD=§\n",
    "Environment=\"DB_PASSWORD=§\"\n",
    "variable \"db_password\" {\n  default = \"§\"\n}\n",
    "  master_password = \"§\"\n",
    "password => '§',\n",
    "'password' => '§',",
    "requirepass §\n",
    "masterauth §\n",
    "storePassword '§'\n",
    "storePassword=§\n",
    "signing.password=§\n",
    "ansible_become_pass: §\n",
    "ansible_ssh_pass=§\n",
    "smtp_pass = §\n",
    "http_password = §\n",
    "rootpw §\n",
    "rootpw --plaintext §\n",
    "wpa_passphrase=§\n",
    "psk_passphrase: §\n",
    "bindpw §\n",
    "bind_password: \"§\"\n",
    "$dbpass = '§';\n",
    "define('DB_PASSWORD', '§');\n",
    "Server=db;Database=app;User Id=app;Password=§;Encrypt=true",
    "host=db port=5432 user=app password=§ dbname=app",
    "Data Source=db;Pwd=§;\n",
    "db:5432:app:app:§\n",
    "localhost:*:*:postgres:§\n",
    "machine api.example.com login app password §\n",
    "machine api.example.com\n  login app\n  password §\n",
    "//registry.example.com/:_password=\"§\"\n",
    "SetEnv DB_PASSWORD §\n",
    "fastcgi_param DB_PASSWORD §;\n",
    "user_password \"§\";\n",
    // Languages
    "const dbPassword string = \"§\"\n",
    "password := \"§\"\n",
    "var adminPassword = \"§\"\n",
    "Password: \"§\",\n",
    "char *password = \"§\";\n",
    "static const char PASSWORD[] = \"§\";\n",
    "char password[32] = \"§\";\n",
    "#define PASSWORD \"§\"\n",
    "#define WIFI_PASSWORD  \"§\"\n",
    "std::string password = \"§\";\n",
    "std::string password{\"§\"};\n",
    "const std::string kPassword(\"§\");\n",
    "private static final String PASSWORD = \"§\";\n",
    "String dbPassword = new String(\"§\");\n",
    "config.setPassword(\"§\");\n",
    "ds.setPassword( \"§\" );\n",
    "val password: String = \"§\"\n",
    "val password = \"§\"\n",
    "let password = \"§\";\n",
    "let password: &str = \"§\";\n",
    "const PASSWORD: &'static str = \"§\";\n",
    "const password = '§';\n",
    "const password = `§`;\n",
    "{ user: 'app', password: '§' }",
    "this.password = '§';\n",
    "process.env.DB_PASSWORD || '§'",
    "process.env.DB_PASSWORD ?? \"§\"",
    "password = '§'\n",
    "connect(host='db', password='§')",
    "connect(user=\"app\", password=\"§\", port=1)",
    "os.environ['DB_PASSWORD'] = '§'\n",
    "os.environ.get('DB_PASSWORD', '§')",
    "os.getenv(\"DB_PASSWORD\", \"§\")",
    "config[\"password\"] = \"§\"\n",
    "password = b'§'\n",
    "ENV['DB_PASSWORD'] = '§'\n",
    "ENV.fetch('DB_PASSWORD', '§')",
    ":password => \"§\",",
    "{:password \"§\"}",
    "(setq password \"§\")",
    "(def password \"§\")",
    "Dim password As String = \"§\"\n",
    "password = @\"§\";\n",
    "string Password { get; set; } = \"§\";\n",
    "public string Password = \"§\";\n",
    "NSString *password = @\"§\";\n",
    "my $password = \"§\";\n",
    "$password = '§';\n",
    "local password = \"§\"\n",
    "password <- \"§\"\n",
    "Password = <<\"§\">>,",
    "DECLARE @password NVARCHAR(50) = N'§';\n",
    "SET @password = '§';\n",
    "if (password == \"§\") {",
    "if password == '§':\n",
    "assert login(password=\"§\")\n",
    // Statements
    "CREATE USER app IDENTIFIED BY '§';\n",
    "CREATE USER app IDENTIFIED BY \"§\";\n",
    "CREATE USER 'app'@'%' IDENTIFIED WITH mysql_native_password BY '§';\n",
    "ALTER USER app WITH PASSWORD '§';\n",
    "ALTER USER app PASSWORD '§';\n",
    "ALTER LOGIN sa WITH PASSWORD = '§';\n",
    "create role app login encrypted password '§';\n",
    "SET PASSWORD FOR 'app'@'%' = PASSWORD('§');\n",
    "GRANT ALL ON app.* TO 'app' identified by '§';\n",
    // Shells and commands
    "$env:DB_PASSWORD = \"§\"\n",
    "$pw = ConvertTo-SecureString \"§\" -AsPlainText -Force\n",
    "ConvertTo-SecureString -String '§' -AsPlainText -Force\n",
    "\"§\" | ConvertTo-SecureString -AsPlainText -Force\n",
    "set DB_PASSWORD=§\n",
    "setx DB_PASSWORD §\n",
    "set -x DB_PASSWORD §\n",
    "setenv DB_PASSWORD §\n",
    "PGPASSWORD=§ psql -h db -U app",
    "MYSQL_PWD=§ mysql -u app",
    "docker run -e POSTGRES_PASSWORD=§ postgres",
    "docker run -e \"POSTGRES_PASSWORD=§\" postgres",
    "docker login -u app -p § registry.example.com",
    "helm install app . --set auth.password=§",
    "kubectl create secret generic db --from-literal=password=§",
    "heroku config:set DB_PASSWORD=§",
    "curl -u app:§ https://api.example.com",
    "curl -u :§ https://api.example.com",
    "curl --user 'app:§' https://api.example.com",
    "curl -d 'user=app&password=§' https://api.example.com",
    "curl -d '{\"password\":\"§\"}' https://api.example.com",
    "wget --user=app --password=§ https://example.com",
    "redis-cli -h db -a § ping",
    "redis-cli --pass § ping",
    "mysql -u root -p§ app",
    "mysql -u root --password=§ app",
    "mysqldump -uroot -p'§' app",
    "sshpass -p § ssh host",
    "sshpass -p '§' ssh host",
    "sqlcmd -S db -U sa -P § -Q 'select 1'",
    "sqlcmd -S db -U sa -P \"§\"",
    "ldapsearch -x -D cn=admin -w § -b dc=example",
    "ldapmodify -D cn=admin -w '§' -f x.ldif",
    "echo app:§ | chpasswd",
    "echo 'app:§' | sudo chpasswd",
    "echo \"app:§\" | chpasswd",
    "chpasswd <<< 'app:§'",
    "echo § | passwd --stdin app",
    "echo '§' | docker login --password-stdin",
    "htpasswd -b .htpasswd app §\n",
    "htpasswd -cbB .htpasswd app '§'\n",
    "keytool -genkey -storepass § -keystore x.jks",
    "keytool -genkey -keypass § -alias x",
    "keytool -list -storepass '§'",
    "openssl rsa -in key.pem -passin pass:§ -out x",
    "openssl pkcs12 -export -passout pass:§ -out x",
    "gpg --batch --passphrase § -c file",
    "7z x file.7z -p§",
    "unzip -P § file.zip",
    "zip -P § file.zip a b",
    "mongo -u app -p § db",
    "mongosh --username app --password § db",
    "smbclient //host/share -U app%§",
    "xfreerdp /u:app /p:§ /v:host",
    "ipmitool -H host -U admin -P § power on",
    "mosquitto_pub -h host -u app -P § -t t -m m",
    "cqlsh host -u app -p §",
    "lftp -u app,§ ftp.example.com",
    "az sql server create --admin-password §",
    "app --db-password § run",
    "app --password=§ run",
    "app -password § run",
    "$cred = Get-Credential -Password §\n",
    // Prose and chat
    "my password is §",
    "The password is §.",
    "the password for the database is §",
    "password is `§`",
    "Password: §",
    "Passwort: §",
    "Das Passwort lautet §",
    "Kennwort: §",
    "pw: §",
    "PW: §",
    "pwd: §",
    "pass: §",
    "passphrase: §",
    "mot de passe : §",
    "contraseña: §",
    "La contraseña es §",
    "senha: §",
    "A senha é §",
    "пароль: §",
    "Пароль: §",
    "密码：§",
    "密码是§",
    "密码: §",
    "口令：§",
    "パスワード：§",
    "パスワードは§",
    "पासवर्ड: §",
    "পাসওয়ার্ড: §",
    "كلمة المرور: §",
    "كلمة السر: §",
    "kata sandi: §",
    "şifre: §",
    "parola: §",
    "비밀번호: §",
    "- **Password:** §\n",
    "- **Password**: `§`\n",
    "| password | § |\n",
    "User: app, Password: §\n",
    "login: app / password: §",
    "use password § to log in",
    "with the password \"§\" it works",
    "ssh app@host (password: §)",
    "Password → §",
    "Password - §\n",
    "credentials: app / §\n",
    // Logs
    "2026-01-01T00:00:00Z INFO connecting user=app password=§ host=db",
    "DEBUG Config{user='app', password='§', port=1}",
    "DEBUG Config(user=app, password=§, port=1)",
    "[info] \"password\":\"§\",\"user\":\"app\"",
    "POST /login user=app&password=§ HTTP/1.1",
    "GET /login?user=app&password=§&x=1 HTTP/1.1",
    "password[§]",
    "level=debug msg=\"login\" password=\"§\"",
    "+ export DB_PASSWORD=§\n",
    "+ DB_PASSWORD='§'\n",
    "-  password: §\n",
    "   12:   password: \"§\"\n",
    "config.yml:3:  password: §\n",
    "params={'user': 'app', 'password': '§'}",
    "Parameters: {\"user\"=>\"app\", \"password\"=>\"§\"}",
    "password%3D§%26user%3Dapp",
    "&quot;password&quot;:&quot;§&quot;",
];

/// Returns newly drawn passwords of the forms that people and programs make.
fn passwords(dice: &mut Dice) -> [String; 6] {
    const SMALL: &[u8] = b"abcdefghijkmnopqrstuvwxyz";
    const LARGE: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
    const DIGITS: &[u8] = b"23456789";
    const BOTH: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let animals = ["otter", "badger", "heron", "lynx", "marmot"];
    let plants = ["moss", "fern", "maple", "aster", "willow"];
    [
        // A capital, two words, digits, a sign: `Otterfern482!`
        {
            let word = animals[dice.below(5)];
            let word = word[..1].to_uppercase() + &word[1..] + plants[dice.below(5)];
            word + &dice.drawn(DIGITS, 3) + "!"
        },
        // Two words and digits: `lynxmaple57`
        animals[dice.below(5)].to_owned() + plants[dice.below(5)] + &dice.drawn(DIGITS, 2),
        // Sixteen letters and digits.
        dice.drawn(LARGE, 1) + &dice.drawn(BOTH, 13) + &dice.drawn(DIGITS, 2),
        // With signs: `kT7#vLq2@zRw`
        dice.drawn(SMALL, 1)
            + &dice.drawn(LARGE, 1)
            + &dice.drawn(DIGITS, 1)
            + "#"
            + &dice.drawn(BOTH, 4)
            + "@"
            + &dice.drawn(BOTH, 3),
        // A short one: `Qx7vRp2k`
        dice.drawn(LARGE, 1)
            + &dice.drawn(SMALL, 1)
            + &dice.drawn(DIGITS, 1)
            + &dice.drawn(BOTH, 4)
            + &dice.drawn(DIGITS, 1),
        // Groups: `kfqw-8213-xtzp`
        dice.drawn(SMALL, 4) + "-" + &dice.drawn(DIGITS, 4) + "-" + &dice.drawn(SMALL, 4),
    ]
}

#[test]
fn passwords_are_taken_wherever_they_are_written() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut found, mut count, mut lost) = (0, 0, Vec::new());
    assert!(PLACES.len() >= 200, "{} places", PLACES.len());
    for place in PLACES {
        let (before, after) = place.split_once('§').expect("each place has one");
        for password in passwords(&mut dice) {
            count += 1;
            // A password also counts as found if the mark includes a sign beside it, but not if a part of it is left.
            if taken(before, &password, after) {
                found += 1;
            } else {
                lost.push(place.replace('§', &password));
            }
        }
    }
    assert!(found * 100 >= count * 95, "{found} of {count}; {lost:#?}");
}
