//! Secrets that are identified by the structure of the text: columns, members, output of commands, logins, sentences.

use super::word::PASSWORDS;
use super::{Rule, Scanner, scanned};

#[rustfmt::skip] // Literals are easier to read in rows.
pub(super) const RULES: &[Rule] = &[
    scanned(
        "provider-key",
        "key of a configured provider, found by its characters",
        "the user's configuration",
        &["tiro provider key "],
        Scanner::Provided,
    ),
    scanned(
        "password-field",
        "password in a column or a member that is named so",
        "RFC 4180, CSV; psql, mysql and Markdown tables; SQL, INSERT; lists of names and values in JSON, YAML, HCL and XML",
        PASSWORDS,
        Scanner::Structure,
    ),
    scanned(
        "secret-field",
        "token, key or secret in a column or a member that is named so",
        "RFC 4180, CSV; psql, mysql and Markdown tables; SQL, INSERT; lists of names and values in JSON, YAML, HCL and XML",
        &["secret", "token", "key", "credential", "totp"],
        Scanner::Structure,
    ),
    scanned(
        "printed-secret",
        "what a command printed that prints a secret",
        "the manuals of the commands",
        &[
            "op read ", "op item get ", "pass show ", "pass ", "gopass ", "printenv ", "echo $", "echo \"$", "echo %", "secrets versions access", "get secret ", "get secrets ", "| base64 -d",
            "| base64 --decode", "base64 -D", "vault kv get", "vault read ", "get-secret-value", "get-parameter", "openssl rand ", "keyvault secret show", "config:get ", "secrets get ",
            "bw get password", "bw get totp", "bw get item", "find-generic-password", "find-internet-password", "lpass show", "secret-tool lookup", "auth token", "print-access-token",
            "print-identity-token", "get-access-token", "get-login-password", "create token ", "pwgen ", "terraform output", "tofu output", "sops -d ", "sops --decrypt", "sops decrypt", "ansible-vault ", "cat ",
            "cut -d= -f2", "chamber read", "keyring get", "credstash get", "apg ", "makepasswd", "ksm secret", "infisical secrets get", "consul kv get", "az acr credential", "diceware", "jq -r .", "get secret", "Get-Secret", "token", "password", "Password", "secret", "Secret", "urandom",
        ],
        Scanner::Output,
    ),
    scanned(
        "login-line",
        "password in a line by which a client logs in",
        "Redis, AUTH; RFC 4954, SMTP AUTH; RFC 3501, IMAP LOGIN; RFC 1939, POP3 PASS; RFC 959, FTP PASS; RFC 4616, PLAIN; Windows, net use",
        &["AUTH ", "AUTH\r\n", "LOGIN ", "PASS ", "IDENTIFY ", "SETUSER ", "requirepass ", "masterauth ", "AUTHENTICATE ", "334 UGFzc3dvcmQ6", "mechanism='PLAIN'", "mechanism=\"PLAIN\"", "net use ", "net user ", "\"AUTH\" ", "ftp> user "],
        Scanner::Dialogue,
    ),
    scanned(
        "spoken-password",
        "password in a sentence that speaks of it",
        "usage; judged by its form and entropy",
        PASSWORDS,
        Scanner::Sentence,
    ),
    scanned(
        "spoken-secret",
        "token, key or login in a sentence that speaks of it",
        "usage; judged by its form and entropy",
        &[
            "secret", "token", "api key", "API key", "access key", "key is", "wifi", "wi-fi", "clé", "schlüssel", "Schlüssel", "密钥", "密鑰", "令牌", "clave de API", "clave api", "ключ", "токен", "cred", "login", "log in", "sign in", "zugang", "anmeld", "identifiant",
            "credencial", "credenzial", "логин", "账号", "帐号", "用户名", "benutzer", "utilisateur", "usuario", "ssh ", "this key", "the key",
        ],
        Scanner::Sentence,
    ),
    scanned(
        "password-nearby",
        "what has the shape of a password, near a word for one",
        "usage; judged by its form",
        &[
            "password", "Password", "passphrase", "passwd", "pwd", "pw", "PW", "pass ", "login", "Login", "log in", "sign in", "creds", "credential", "account", "sudo", "unlock", "decrypt", "Wi-Fi", "WiFi", "wifi",
            "密码", "密碼", "口令", "パスワード", "パスフレーズ", "暗証", "合言葉", "ログイン", "登录", "contraseña", "clave", "mot de passe", "mdp", "Passwort", "Kennwort", "kennwort", "parola", "пароль", "Пароль", "пароля", "пароли", "логин", "senha", "비밀번호",
            "admin", "FTP", "VPN", ".zip", "ZIP", " PDF", "NAS ", "router", "FritzBox", "zugang", "Zugang", "anmeld", "entsperr", "accès", "identifiant", "compte", "connexion", "déverrouill", "acceso", "usuario", "cuenta", "desbloque", "accesso", "credenzial",
            "credencial", "utente", "sblocca", "доступ", "учётк", "юзер", "вход", "разблокир", "ユーザー", "管理画面", "認証", "アカウント", "解除", "解凍", "パス：", "用户", "账号", "帐号", "解压", "解锁", "管理员",
        ],
        Scanner::Nearby,
    ),
    scanned(
        "key-nearby",
        "what has the shape of a key, after a word for one",
        "usage; judged by its form",
        &[
            "token", "Token", "secret", "Secret", " key", "encryption key", "signing key", "API key", "api key", "jeton", "clé", "clef", "schlüssel", "Schlüssel", "llave", "clave", "segreto", "chiave", "secreto", "ключ", "Ключ",
            "токен", "секрет", "Секрет", "トークン", "シークレット", "キー", "密钥", "密鑰", "令牌",
        ],
        Scanner::NearbyKey,
    ),
    scanned(
        "address-password",
        "password after the address of a host and before it",
        "usage; judged by its form and entropy",
        &["@", " / "],
        Scanner::Address,
    ),
    scanned(
        "argument",
        "password among the arguments of a call that takes one",
        "the documentation of HTTP clients, drivers of databases and of tests",
        &[
            "basic_auth(", "BasicAuth(", "basicAuth(", "auth=(", "auth = (", "USERPWD", "new PDO(", "new mysqli(", "mysqli_connect(", "pg_connect(", "getConnection(", ".login(", "NetworkCredential(",
            "WithEmailAndPassword(", "PasswordCredential(", "UsernamePasswordCredentials(", "PasswordAuthentication(", "PlainAuth(", "changeUserPassword(", "PlainAuthenticator(", "StaticProvider(",
            "AuthPlugin(", "createUser(", ".auth(", "credentials(", "Credentials(", "authenticate(",
            "typeText(", "TextInput(", ".type(", ".fill(", "fill_in ", "fillField(", "send_keys(", "sendKeys(", "setValue(", "addValue(", "assertEquals(", "assertEqual(", "assert_equal ", "by lazy {",
            "SetDefault(", "assertSame(", "setText(", "enterText(", "XCTAssertEqual(", "should eq ", "Equal(t, ", ".to eq(", ".to eq ", "send_keys ", "Field(default=", "assert_eq!(", "StringLiteral(",
        ],
        Scanner::Argument,
    ),
    scanned(
        "given-secret",
        "secret that a command is given",
        "the manuals of the commands",
        &[
            "secret set ", "secrets set ", "secret put ", "secrets put ", "secret create ", "secrets create ", "secrets add ", "secret add ", "cryptsetup ", "--passphrase-fd", "env add ", "cargo login ", "vault login ",
            "config set --secret ", "config set ", "config:set ", "openssl passwd ", "wpa_passphrase ", "add_user ", "change_password ", "alias set ", "bw login ", "bw unlock ", "codecov -t ", "passwd --stdin", "sudo -kS", "sudo -S", "sudo --stdin", "sudo -Sk",
            "| passwd", "--with-token", "--pinentry-mode", "from-literal=", "--password-command", "expect -c ", "expect:", "rclone config ", "rclone obscure ", "sshpass ", "--secret-string ", "npm token ", "auth login ",
            "variable set ", "kinit ", "sqlplus ", "put-parameter ", "htdigest ", "mkpasswd ", "sendline(", "send \"", "--body ", "age-keygen ", "ansible-vault encrypt_string ", "vault kv put ", "vault write ", "ssh-keygen ", "openssl enc ", "openssl aes", "openssl des", "snmpwalk ", "snmpget ", "signtool ", "vncpasswd ", "sec.psk ", "config:add ", "-A bearer ", "pdftk ", "qpdf ",
        ],
        Scanner::Given,
    ),
];
