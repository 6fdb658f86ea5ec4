//! Tests passwords of the forms that generators make, in the places where people and programs write them.

mod places;

use crate::Redactor;

/// Returns `text` without its secrets.
fn redact(text: &str) -> String {
    Redactor::new([7; 32]).redact(text).text.into_owned()
}

/// Returns whether redaction replaces `secret` between `before` and `after` by one mark and changes nothing else.
fn taken(before: &str, secret: &str, after: &str) -> bool {
    let redacted = redact(&format!("{before}{secret}{after}"));
    let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    middle
        .and_then(|mark| mark.strip_prefix("[REDACTED:")?.strip_suffix(']'))
        .is_some_and(|mark| !mark.contains('['))
}

/// Draws numbers; the same numbers each time the tests run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn drawn(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

/// The passwords of one generator.
struct Generator {
    name: &'static str,
    alphabet: Vec<u8>,
    lengths: std::ops::RangeInclusive<usize>,
    /// The names under which such passwords are found.
    names: &'static [&'static str],
}

fn generators() -> Vec<Generator> {
    let printable = || b'!'..=b'~';
    let alphanumeric = || printable().filter(u8::is_ascii_alphanumeric);
    const NAMES: &[&str] = &["DB_PASSWORD", "password", "dbPassword", "admin_password", "master_password"];
    vec![
        Generator {
            name: "Amazon RDS: printable ASCII without / @ \" and space",
            alphabet: printable().filter(|b| !b"/@\"".contains(b)).collect(),
            lengths: 16..=30,
            names: NAMES,
        },
        Generator {
            name: "AWS Secrets Manager: letters, digits and all punctuation, 32",
            alphabet: printable().collect(),
            lengths: 32..=32,
            names: NAMES,
        },
        Generator {
            name: "Terraform random_password",
            alphabet: alphanumeric().chain(*b"!@#$%&*()-_=+[]{}<>:?").collect(),
            lengths: 16..=24,
            names: NAMES,
        },
        Generator {
            name: "KeePass: letters, digits and special signs, 20",
            alphabet: printable().filter(|b| !b"'`".contains(b)).collect(),
            lengths: 20..=20,
            names: NAMES,
        },
        Generator {
            name: "WordPress keys and salts, 64",
            alphabet: alphanumeric().chain(*b"!@#$%^&*()-_ []{}<>~`+=,.;:/?|").collect(),
            lengths: 64..=64,
            names: &[
                "AUTH_KEY",
                "SECURE_AUTH_KEY",
                "LOGGED_IN_KEY",
                "NONCE_KEY",
                "AUTH_SALT",
                "SECURE_AUTH_SALT",
                "LOGGED_IN_SALT",
                "NONCE_SALT",
            ],
        },
    ]
}

/// Returns `text` with a backslash before each of `signs`.
fn escaped(text: &str, signs: &str) -> String {
    text.chars().flat_map(|c| signs.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Returns the ways in which `format` writes `password` under `name`, each as the text before the password, the
/// password as it is written, and the text after it.
fn written(format: &str, name: &str, password: &str) -> Vec<(String, String, String)> {
    let plain =
        |extra: &str| password.bytes().all(|b| b.is_ascii_graphic() && !extra.as_bytes().contains(&b));
    let first = |signs: &str| signs.contains(&password[..1]);
    let mut ways = Vec::new();
    let mut way = |before: String, secret: String, after: &str| ways.push((before, secret, after.to_owned()));
    match format {
        "JSON" => {
            way(
                format!("{{\n  \"user\": \"app\",\n  \"{name}\": \""),
                escaped(password, "\"\\"),
                "\",\n  \"port\": 5432\n}\n",
            );
            way(format!("{{\"user\":\"app\",\"{name}\":\""), escaped(password, "\"\\"), "\"}");
        }
        "YAML" => {
            way(format!("db:\n  {name}: \""), escaped(password, "\"\\"), "\"\n  port: 5432\n");
            way(format!("db:\n  {name}: '"), password.replace('\'', "''"), "'\n  port: 5432\n");
            let indicator = first("-?:,[]{}#&*!|>'\"%@`");
            if plain("#") && !indicator && !password.ends_with(':') {
                way(format!("db:\n  {name}: "), password.to_owned(), "\n  port: 5432\n");
            }
        }
        ".env" => {
            way(format!("USER=app\n{name}=\""), escaped(password, "\"\\$`"), "\"\nPORT=5432\n");
            if !password.contains('\'') {
                way(format!("USER=app\n{name}='"), password.to_owned(), "'\nPORT=5432\n");
            }
            if plain("#") && !first("\"'`") {
                way(format!("USER=app\n{name}="), password.to_owned(), "\nPORT=5432\n");
            }
        }
        "HCL" => {
            let inner = escaped(password, "\"\\").replace("${", "$${").replace("%{", "%%{");
            way(format!("resource \"db\" \"main\" {{\n  {name} = \""), inner, "\"\n}\n");
        }
        "PHP" => {
            way(format!("<?php\ndefine('{name}', '"), escaped(password, "'\\"), "');\n");
            way(format!("<?php\n$config['{name}'] = '"), escaped(password, "'\\"), "';\n");
            way(format!("<?php\nreturn ['{name}' => \""), escaped(password, "\"\\$"), "\"];\n");
        }
        _ => unreachable!("the formats are those of the test"),
    }
    ways
}

#[test]
fn generated_passwords_are_taken_whole() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut lost = Vec::new();
    for generator in generators() {
        for format in ["JSON", "YAML", ".env", "HCL", "PHP"] {
            let (mut found, mut count) = (0, 0);
            for number in 0..40 {
                let (shortest, longest) = generator.lengths.clone().into_inner();
                let length = shortest + dice.below(longest - shortest + 1);
                let password = dice.drawn(&generator.alphabet, length);
                let name = generator.names[number % generator.names.len()];
                for (before, secret, after) in written(format, name, &password) {
                    count += 1;
                    if taken(&before, &secret, &after) {
                        found += 1;
                    } else {
                        lost.push(format!("{format}: {before}{secret}{after}"));
                    }
                }
            }
            assert!(found * 100 >= count * 95, "{}, {format}: {found} of {count}; {lost:#?}", generator.name);
        }
    }
}

/// Values that are in places where a password or a token could be, but are not secrets.
#[rustfmt::skip] // One a line.
const LOOK_ALIKES: &[&str] = &[
    // Placeholders
    "password: ${DB_PASSWORD}", "password=${DB_PASSWORD:-none}", "password: {{ .Values.password }}", "password = \"{{ vault_password }}\"",
    "password: <your-password>", "password=<YOUR_PASSWORD_1>", "password: \"%s\"", "password=%(password)s", "PASSWORD=%DB_PASSWORD%",
    "password=$(cat /run/secrets/db1)", "password: `cat file1`", "password=$DB_1_ENV_MYSQL_PASSWORD", "password: $password1",
    "password: \"#{ENV['PASSWORD']}\"", "password = '<%= @password1 %>'", "password: [redacted]", "password: \"${var.db_password}\"",
    "password=\"prefix-${USER_NAME}-1\"", "password: ***", "password: xxxxxxxx1", "pwd: {0}", "password: @{credentials.password1}",
    // Code that reads, passes on or checks a password
    "password = getenv(\"DB_PASSWORD\")", "password = os.environ[\"DB_PASSWORD_1\"]", "password: process.env.DB_PASS1,",
    "password = get_password(user1)", "password = config.get('db', 'password1')", "let password = read_line()?.trim();",
    "password := os.Getenv(\"PASS1\")", "password: this.form.value.password2,", "self.password = kwargs.pop('password1')",
    "password = hash_fn(password1 + salt2)", "if (typeof this.password === 'function') {", "if password == 'none' or password2:",
    "password: Option<String>,", "password: [u8; 32],", "char password[32];", "password: String(64),", "password = Column(String(128))",
    "$password = $_POST['password1'];", "$password = $request->input('pass2');", "password = models.CharField(max_length=128)",
    "e.password=t.p[0],n.token=r(1)", "{password:e,token:t.t1(n),key:r[2]}", "password:function(e){return e.p1}",
    "const PASSWORD_REGEX = /^(?=.*[A-Z])(?=.*[0-9]).{8,}$/;", "password: '^(?=.*[a-z])(?=.*\\\\d).{8,}$'",
    "auth_password(\"bob1\", password)", "WHERE password = ? AND user_name = 'admin1'", "query = \"password='\" + password1 + \"'\"",
    "db.Exec(\"ALTER USER app IDENTIFIED BY '\" + pw1 + \"'\")", "password || password2", "password or default_pw1",
    // Labels, translations, forms
    "\"password\": \"Passwort\"", "\"password\": \"Contraseña\"", "LABEL_PASSWORD: \"senha\"", "\"password\": \"Mot de passe\"",
    "password: 'Enter your password (8 to 20 signs)'", "passwordLabel: \"kennwort\"", "<label for=\"password\">Password</label>",
    "<input type=\"password\" name=\"password\" id=\"pass1\">", "type: \"password\"", "\"passwordType\": \"text\"",
    "msgid \"password\"\nmsgstr \"heslo\"", "passwordField: 'login-form'", "show_password: \"toggle\"",
    // Prose and logs
    "The password is required and has to hold 8 signs.", "My password is wrong! What now?", "password for user postgres:",
    "Enter password: ", "password - see the manual", "the password of the user is stored hashed", "forgot your password? It happens.",
    "use password authentication instead of keys", "with password authentication off", "la contraseña es obligatoria",
    "密码是必填项", "パスワードは必須です", "пароль: обязательно", "parola: italiana", "the clave is a key",
    "clave: primaria", "pw: see above", "PW is short for password", "compass: north1east", "bypass=true1",
    // Commands without a password
    "docker run -p 8080:80 -e X=1 nginx", "mkdir -p a/b1/c2", "ssh -p 2222 host1", "scp -P 2222 a host1:b", "ls -a dir1", "grep -w word1 file",
    "redis-cli -a $REDIS_PASS ping", "mysql -u root -p app", "mysql -p$PASS app", "sudo -u app1 cmd", "curl -u \"$USER1:$PASS1\" x", "git commit -a -m x1",
    "12:5432:34 text", "127.0.0.1:5432:5432", "image:5432:tag", "cat /etc/passwd1 | grep x", "chpasswd < file1", "htpasswd -c file app1",
];

#[test]
fn strings_that_only_look_like_passwords_stay() {
    let lost: Vec<_> = LOOK_ALIKES.iter().filter(|text| redact(text) != **text).collect();
    assert!(lost.is_empty(), "{:#?}", lost.iter().map(|text| redact(text)).collect::<Vec<_>>());
}

/// Pieces of text that give many hits close together, or long runs after a hit, when they are repeated.
#[rustfmt::skip] // Many a line.
const PIECES: &[&str] = &[
    " ", "a", "A", "0", "\n", "-", "_", "=", "\"", "'", "\\", "(", "{", "[", "<", "$", "%", "é", "密", "aB3#",
    "password", "password=", "password=\"", "password='", "password: ", "password ", "\"password\",", "password={", "password={{",
    "password=$(", "password=f(", "password[", "pw=", "pass:", "pass:a", "secret=\"", "token=", "token ", "key=", "api_key='", "auth:",
    " -p", " -p=\"", " -u a:", " -P1", "mysql -pa1 ", "redis-cli -a ", "identified by '", "chpasswd ", "htpasswd -b ", "a:5432:b:c:",
    "密码：", "пароль: ", "is ", "password is ", "login ", "password for a ", "getenv(\"password\",", "password string = ",
];

/// Only the text within some kilobytes of a hit may decide, so that no other text has to be read.
#[test]
fn findings_do_not_depend_on_distant_text() {
    let mut dice = Dice(0x853C_49E6_748F_EA9B);
    for piece in PIECES {
        let filler = piece.repeat(6_000 / piece.len());
        let secret = ["kT7", "vLq2", &dice.drawn(b"abcdefghkmnpqrstuvwxyz23456789", 16)].concat();
        let text = format!("{filler}\n\nDB_PASSWORD={secret}\n\n{filler}");
        let near = format!("\n\nDB_PASSWORD={secret}\n\n");
        assert!(redact(&text).contains(&redact(&near)), "{piece:?}");
    }
}
