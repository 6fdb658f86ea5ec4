//! Words that mean password, in the most used languages.

/// The name of a password contains one of these words.
///
/// Some words are listed several times, because a search changes the case of ASCII letters only.
#[rustfmt::skip] // Easier to read with one or two languages per line.
pub(crate) const PASSWORDS: &[&str] = &[
    "pass", "pwd", "pw", "psw", "masterauth", "identified by", "ConvertTo-SecureString",
    "密码", "密碼", "口令", "パスワード", "비밀번호", "암호",
    "contraseña", "CONTRASEÑA", "contrasena", "clave", "senha", "palavra-passe", "contrasenya",
    "mot de passe", "mdp", "kennwort", "wachtwoord", "parola", "hasło", "heslo", "jelszó", "lösenord", "adgangskode", "salasana",
    "пароль", "Пароль", "ПАРОЛЬ", "пароля", "şifre", "Şifre", "ŞİFRE",
    "पासवर्ड", "পাসওয়ার্ড", "পাসওয়ার্ড", "كلمة المرور", "كلمة السر", "كلمه المرور", "پاس ورڈ", "رمز عبور",
    "kata sandi", "mật khẩu", "รหัสผ่าน", "סיסמה", "κωδικός",
];
