//! Tests with texts of each structure: where a secret stands (`§`), and look-alikes that have none.

use crate::Redactor;

/// Values of the shapes that people and programs draw. They are put together here, so that no secret stands in this
/// file.
fn values() -> [String; 4] {
    [
        ["Maple", "-Otter-", "58"].concat(),
        ["kT7v", "Lq2z#Rw9"].concat(),
        ["q8Zr4M", "x1Vt7Kp2"].concat(),
        ["Heron", "2024!"].concat(),
    ]
}

/// Asserts that each value is replaced in each of `texts`, and that the text around it stays.
fn taken(texts: &[&str]) {
    let mut lost = Vec::new();
    for text in texts {
        for value in values() {
            let text = text.replace('§', &value);
            let redacted = Redactor::blank().redact(&text).text.into_owned();
            let (begin, end) = text.split_once(&value).expect("each text has one");
            // A sign beside the value may be replaced with it.
            let end = end.trim_start_matches(['"', '\'', '`', ' ', ',', '.']);
            if redacted.contains(&value) || !redacted.starts_with(begin) || !redacted.ends_with(end) {
                lost.push((text, redacted));
            }
        }
    }
    let count = texts.len() * values().len();
    assert!(lost.len() * 20 <= count, "{} of {count}: {lost:#?}", lost.len());
}

/// Asserts that nothing in `texts` is replaced.
fn stays(texts: &[&str]) {
    for text in texts {
        assert_eq!(Redactor::blank().redact(text).text, *text);
    }
}

#[test]
fn the_header_of_a_table_decides_for_its_column() {
    taken(&[
        "name,password,email\nada,§,ada@example.org\n",
        "id;user;passwort;rolle\n1;ada;§;admin\n",
        "\"user\",\"password\",\"note\"\n\"ada\",\"§\",\"first, of all\"\n",
        "service\tapi_key\towner\nbilling\t§\tada\n",
        "folder,name,login_uri,login_username,login_password,login_totp\n,Bank,https://b.example.com,ada,§,\n",
        " id | username | password \n----+----------+----------\n  1 | ada      | §\n(1 row)\n",
        "+----+------+\n| id | passwd |\n+----+------+\n|  1 | § |\n+----+------+\n",
        "┌──────┬────────┐\n│ name │ secret │\n├──────┼────────┤\n│ ada  │ § │\n└──────┴────────┘\n",
        "| Host | User | Password |\n|------|------|----------|\n| db1 | ada | `§` |\n",
        "NAME      TOKEN                 AGE\nbilling   §   3d\n",
        " password \n----------\n §\n(1 row)\n",
        "<table><tr><th>User</th><th>Password</th></tr><tr><td>ada</td><td>§</td></tr></table>",
        "INSERT INTO users (id, name, password) VALUES (1, 'ada', '§');",
        "INSERT INTO `clients` (`id`,`client_secret`) VALUES (3,'§');",
        "COPY users (id, name, password) FROM stdin;\n1\tada\t§\n\\.\n",
    ]);
    stays(&[
        "| Name | Password | Note |\n|---|---|---|\n| ada | your-password | - |\n| bob | `********` | none |\n",
        "| Token | Meaning |\n|---|---|\n| IDENT | a name |\n| NUMBER_LITERAL | 12 |\n| `^music` | prefix |\n",
        "name,password,email\nstring,varchar(255),text\nada,<password>,x\nbob,$DB_PASSWORD,y\n",
        "    C_PROXY_PASS,\n    C_PROXY_SSL_ALLOW_BEAST,\n    C_SOCKS5_GSSAPI,\n",
        "def login(user, password, token):\n    return auth(user, password, token)\n",
        "name,public_key,token_count\nada,Ab3dEf6hIj9kLmNo,1234567890ab\n",
        "INSERT INTO users (id, name, password) VALUES (?, ?, ?), ($1, $2, $3), (:id, :name, :password);",
    ]);
}

#[test]
fn a_name_and_its_value_are_found_in_any_order() {
    taken(&[
        "{\"value\": \"§\", \"name\": \"DB_PASSWORD\"}",
        "{\n  \"name\": \"DB_PASSWORD\",\n  \"secure\": true,\n  \"value\": \"§\"\n}",
        "env:\n- value: \"§\"\n  name: DB_PASSWORD\n- name: HOST\n  value: db\n",
        "environment = [\n  { value = \"§\", name = \"DB_PASSWORD\" },\n]",
        "{\"ParameterKey\":\"DbPassword\",\"ParameterValue\":\"§\"}",
        "<input value=\"§\" name=\"password\" type=\"password\">",
        "<setting name=\"password\"><value>§</value></setting>",
        "variable \"db_password\" {\n  type    = string\n  default = \"§\"\n}",
        "{\"DB_PASSWORD\":{\"type\":\"string\",\"value\":\"§\"}}",
        "password:\n  value: §\n",
    ]);
    stays(&[
        "{\"name\": \"DB_PASSWORD\", \"value\": \"${DB_PASSWORD}\"}",
        "{\"name\": \"password\", \"type\": \"string\", \"default\": \"changeme\"}",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db-credentials-1, key: password}\n- name: IMAGE\n  value: Node-Alpine-2024\n",
        "{\"name\": \"password\"}, {\"name\": \"build\", \"value\": \"Release-Build-2024\"}",
    ]);
}

#[test]
fn what_a_command_prints_that_prints_a_secret_goes() {
    taken(&[
        "$ op read op://Private/db/password\n§\n$ ls\n",
        "ada@box:~$ pass show work/mail\n§\n",
        "❯ printenv DB_PASSWORD\n§\n",
        "# kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n§\n",
        "$ vault kv get -field=password secret/app\n§\n",
        "$ terraform output -raw db_password\n§\n",
        "PS C:\\> echo $env:API_TOKEN\n§\n",
        "Bash: printenv DB_PASSWORD\nok:\n§",
        "● Bash(pass show work/db)\n  ⎿  §\n",
        "{\"command\": \"op read op://x/y/password\", \"stdout\": \"§\\n\", \"exit\": 0}",
    ]);
    stays(&[
        "$ printenv HOME\n/home/ada\n$ printenv EDITION\nMaple-Otter-58\n",
        "$ cat version.txt\nRelease-Build-2024\n",
        "$ op read op://Private/db/password\n[ERROR] 2026/01/01 no such item\n",
        "$ pass show work/mail\n```\nThe first line is the password.\n",
        "$ echo aGVsbG8gd29ybGQ= | base64 -d\nhello-world\n",
    ]);
}

#[test]
fn passwords_go_from_the_lines_that_log_in() {
    taken(&[
        "AUTH §\r\n+OK",
        "127.0.0.1:6379> auth default §\nOK",
        "*2\r\n$4\r\nAUTH\r\n$12\r\n§\r\n",
        "HELLO 3 AUTH default § SETNAME app",
        "ACL SETUSER worker on >§ ~* +@all",
        "a1 LOGIN ada@example.com §\n",
        "USER ada\n331 Please specify the password.\nPASS §\n230 Login successful.",
        "/msg NickServ IDENTIFY ada §",
        "net use Z: \\\\server\\share § /user:ada",
        "net user ada § /add",
    ]);
    let plain = ["AGFkYQ", "BrVDd2THEyeg=="].concat();
    for text in
        [format!("AUTH PLAIN {plain}\n235 ok"), format!("C: AUTH LOGIN\nS: 334 UGFzc3dvcmQ6\nC: {plain}\n")]
    {
        assert!(!Redactor::blank().redact(&text).text.contains(&plain), "{text}");
    }
    stays(&[
        "PASS src/redact/a1.test.ts\nPASS ./b2.spec.js\nPASS TestLogin\nPASS: TestLogin2 (0.01s)\n",
        "EHLO x\nAUTH CRAM-MD5\nAUTH DIGEST-MD5\nAUTH SCRAM-SHA-256\nAUTH XOAUTH2\n",
        "250-AUTH PLAIN LOGIN XOAUTH2\n- LOGIN sends the user name\n",
        "net use Z: \\\\server\\share /user:ada\nnet user ada /delete\n",
    ]);
}

#[test]
fn sentences_that_speak_of_a_password_lose_it() {
    taken(&[
        "creds for staging: ada / § (rotate later)",
        "login is ada, pass §",
        "I changed the admin password to § yesterday.",
        "the db password's § if you need it",
        "§ is the password for the staging box",
        "try § as the password",
        "melde dich mit dem Passwort § an",
        "Zugangsdaten: ada / §",
        "Das neue Kennwort ist „§“.",
        "Le mot de passe du serveur est §.",
        "identifiants : ada / §",
        "usuario ada, contraseña §",
        "用户名 ada，密码 §",
        "数据库密码为§，请勿外传",
        "ada@db.example.com:§",
    ]);
    stays(&[
        "The password is hashed with argon2id, the token with sha256, and the secret stays in us-east-1.",
        "A password for user test-user-1 must have 8 characters. The secret to good code is patience.",
        "The token is UTF-8, the password field accepts INT64_MAX characters; see RFC-2617.",
        "Log in as ada@example.com with your password, or use git@github.com:owner/repo.git.",
        "The secret 67e55044-10b1-426f-9247-bb680e5fe0c8 is an id; the password of d670460b4b4aece5915caf5c68d12f560a9fe3e4 too.",
        "Set the password via `url.set_password(None).unwrap()`, the token with `Uuid::new_v4()`.",
        "Passing `-I` to `setup-x86_64`, and passing `--engine=pcre2`, is the same.",
    ]);
}

#[test]
fn calls_and_commands_that_take_a_secret_lose_it() {
    taken(&[
        ".basic_auth(\"ada\", Some(\"§\"))",
        "requests.get(url, auth=(\"ada\", \"§\"))",
        "curl_setopt($c, CURLOPT_USERPWD, \"ada:§\");",
        "DriverManager.getConnection(url, \"ada\", \"§\")",
        "request.setValue(\"§\", forHTTPHeaderField: \"X-Api-Key\")",
        "assertEquals(\"§\", config.getPassword());",
        "cy.get('input[name=\"password\"]').type('§', { force: true })",
        "onView(withId(R.id.password)).perform(typeText(\"§\"))",
        "fill_in \"Password\", with: \"§\"",
        "gh secret set DEPLOY_TOKEN --body \"§\"",
        "echo \"§\" | docker secret create db_pw -",
        "fly secrets set SESSION=§",
        "cryptsetup luksOpen /dev/sdb x <<< '§'",
        "echo '§' | gpg --batch --passphrase-fd 0 -d f.gpg",
        "az keyvault secret set --vault-name kv --name db --value \"§\"",
    ]);
    stays(&[
        ".basic_auth(user, Some(password)); client.login(\"ada\", password); getConnection(url, \"ada\", \"\")",
        "page.fill('#password', process.env.PASSWORD); cy.get('#title').type('Maple-Otter-58{enter}')",
        "assertEquals(\"Release-Build-2024\", config.getName());",
        "gh secret set DEPLOY_TOKEN --repo owner/repo-name-12 < token.txt",
        "echo \"$TOKEN\" | docker secret create db_pw -\ncryptsetup luksOpen /dev/disk/by-uuid x",
    ]);
}

/// People speak of a password in more ways than a grammar has. A value that only a password looks like is replaced in
/// each of these ways.
#[test]
fn what_only_a_password_looks_like_goes_near_a_word_for_one() {
    let values =
        [["kT7v", "Lq2z#Rw9"].concat(), ["Heron", "2024!"].concat(), ["Maple", "-Otter", "582"].concat()];
    let texts = [
        "Nobody remembers who chose § as the Grafana password.",
        "I reset the account; sign in with `§` and choose another.",
        "Wer hat § als Passwort gesetzt?",
        "La contraseña cambió ayer y ahora hay que usar «§».",
        "Essaie § quand le mot de passe est demandé",
        "Диск разблокируется фразой §",
        "パスワードを聞かれたら§と打つ",
        "提示密码时输入§即可",
        "the zip (see the FTP) opens with §",
    ];
    for value in values {
        for text in texts {
            let text = text.replace('§', &value);
            assert!(!Redactor::blank().redact(&text).text.contains(&value), "{text}");
        }
    }
    let token = ["q8Zr4Mx1Vt7Kp2", "Wd5Bn9Hs3Jy6Lc0Fg"].concat();
    for text in [
        "the npm token in CI was revoked, take § from now on",
        "the webhook's signing secret has changed to §",
    ] {
        assert!(!Redactor::blank().redact(&text.replace('§', &token)).text.contains(&token), "{text}");
    }
    stays(&[
        "the password is SHA-256 hashed, with PBKDF2-HMAC-SHA512 since v1.8.0",
        "password auth needs libpam0g-1.5.2 and grafana-oss-10.4.1 on build-03",
        "login fails with AUTH_E4013 and 0xC000006A_u32, see RFC4648-compliant clients",
        "the key was not an ed25519.PrivateKey, and the secret is a Uint8Array",
        "tokenizer: cl100k_base",
        "each entry has an `ID` that you can pass to `GET /api/v1/message/{ID}`",
        "RUN APP_SECRET_TOKEN=secret DATABASE_ADAPTER=mysql2 ON_HEROKU=true bundle install",
        "(t(c=n(g.key)?s[g.key]:C(g,r,p,v))?f(g,o,e,h.elm,!1,i,d):ir(l=r[c],g)?(x(l,g,o,i,d),r[c]=void 0",
        "password hash: 5f4dcc3b5aa765d61d8327deb882cf99",
        "the cache of the token was evicted: 1b4ae53bfd76c3b70f62d419e17f36544d0a1331f04b13d2a942e7752e3789c3",
        "bump react-native@0.72 and vitest@22, the login page needs both",
        "# Rotate the token as docs/secrets.md says\nNODE_OPTIONS=--max-old-space-size=4096\n",
        "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxx\nSLACK_TOKEN=xoxb-your-token-here\n",
    ]);
}
