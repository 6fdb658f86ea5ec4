//! Secrets that have no name beside them: piped into a command, or marked as secret.

use super::{Rule, Scanner, scanned};

pub(super) const RULES: &[Rule] = &[
    scanned(
        "piped-secret",
        "secret piped into a command",
        "sudo(8), -S; GitHub CLI, secret set; Wrangler, secret put; passwd(1)",
        &["sudo -S", "secret set", "secret put", "| passwd", "--with-token", "--pinentry-mode"],
        Scanner::Piped,
    ),
    scanned(
        "marked-secret",
        "value beside a mark that it is secret",
        "Terraform, outputs and state; AWS Systems Manager, SecureString",
        &[
            "sensitive\": true",
            "sensitive\":true",
            "sensitive = true",
            "sensitive   = true",
            "sensitive: true",
            "sensitive=true",
            "\"SecureString\"",
            "type SecureString",
            "\"random_password\"",
            "\"bcrypt_hash\"",
        ],
        Scanner::Marked,
    ),
];
