//! Makes a test of each promise.

/// Makes a test of each promise: that it holds for the engine which the function at the given path returns.
#[macro_export]
macro_rules! holds {
    (($new:path) $($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        $(mod $subject {
            $(#[test]
            fn $promise() {
                $crate::run::holds(Box::new($new()), |fixture| Box::pin($crate::$subject::$promise(fixture)));
            })+
        })+
    };
    ($new:path) => {
        $crate::promises!(holds $new);
    };
}

/// Like [`holds!`], for an engine that may be missing on this machine: the function at the given path returns an
/// `Option`. Without an engine, the tests do nothing.
#[macro_export]
macro_rules! holds_if_there {
    (($new:path) $($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        $(mod $subject {
            $(#[test]
            fn $promise() {
                if let Some(engine) = $new() {
                    $crate::run::holds(Box::new(engine), |fixture| Box::pin($crate::$subject::$promise(fixture)));
                }
            })+
        })+
    };
    ($new:path) => {
        $crate::promises!(holds_if_there $new);
    };
}

/// Makes a test of each promise: that it is broken by a store of the engine, which the function at the given path
/// returns, with the promise's fault.
#[macro_export]
macro_rules! breaks {
    (($new:path) $($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        $(mod $subject {
            $(#[test]
            fn $promise() {
                $crate::run::breaks(Box::new($new()), $crate::broken::Fault::$fault, |fixture| {
                    Box::pin($crate::$subject::$promise(fixture))
                });
            })+
        })+
    };
    ($new:path) => {
        $crate::promises!(breaks $new);
    };
}

/// Like [`breaks!`], for an engine that may be missing on this machine: the function at the given path returns an
/// `Option`. Without an engine, the tests do nothing.
#[macro_export]
macro_rules! breaks_if_there {
    (($new:path) $($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        $(mod $subject {
            $(#[test]
            fn $promise() {
                if let Some(engine) = $new() {
                    $crate::run::breaks(Box::new(engine), $crate::broken::Fault::$fault, |fixture| {
                        Box::pin($crate::$subject::$promise(fixture))
                    });
                }
            })+
        })+
    };
    ($new:path) => {
        $crate::promises!(breaks_if_there $new);
    };
}
