//! The rights that the process which parses documents gives up before it reads one.
//!
//! Limits of the operating system hold everywhere. On Linux, two further walls each keep the parser from files.
//! Landlock takes away every right to paths and TCP ports. A filter of system calls (seccomp) refuses everything that
//! parsing does not need, including connections, new processes and raising the limits, which root could do otherwise.
//! Old kernels and some containers lack these walls; then only the limits hold, and `tiro doctor` says so.

use std::io;

use serde::{Deserialize, Serialize};

#[cfg(unix)]
use super::{MEMORY, PATIENCE};

/// What keeps the process that parses documents from doing anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Limits on memory, processor time, open files, written bytes and processes.
    pub limits: bool,
    /// No right to any path, nor to any TCP port where the kernel has that.
    pub landlock: bool,
    /// Only the system calls that parsing needs.
    pub seccomp: bool,
}

/// Gives up the rights that parsing does not need. This cannot be undone, so it is for a process that only parses and
/// has only one thread. Returns what holds from now on.
///
/// On Windows nothing is given up, and only the time is limited, by the process that waits. On other Unix systems than
/// Linux the memory may stay unlimited.
///
/// # Errors
///
/// On Linux, the errors of setting limits.
pub fn confine() -> io::Result<Confinement> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // Landlock needs a file of its own for a moment, which the limits forbid.
        let landlock = linux::landlock();
        linux::drop_capabilities();
        limit()?;
        Ok(Confinement { limits: true, landlock, seccomp: linux::seccomp() })
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    {
        Ok(Confinement { limits: limit().is_ok(), ..Confinement::default() })
    }
    #[cfg(not(unix))]
    {
        Ok(Confinement::default())
    }
}

/// Sets the limits of the operating system.
#[cfg(unix)]
fn limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [
        (Resource::Core, 0),
        // Open files stay open. No other file, and no connection, can be opened, not even in place of an open file.
        (Resource::Nofile, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Cpu, PATIENCE.as_secs()),
        (Resource::As, MEMORY),
    ];
    for (resource, most) in limits {
        // A second after the soft limit, the hard one ends a process that ignores the signal.
        let hard = if matches!(resource, Resource::Cpu) { most + 1 } else { most };
        let set = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(hard) });
        if cfg!(target_os = "linux") {
            set?;
        }
    }
    Ok(())
}

/// What only Linux has.
#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
    };
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    /// The version of Landlock whose rights are named. On an older kernel, the rights that it knows are taken away.
    const KNOWN: ABI = ABI::V7;

    /// Takes away every right to paths, ports and other processes. Returns whether at least the rights to paths are
    /// gone.
    pub fn landlock() -> bool {
        let restrict = || -> Result<RulesetStatus, RulesetError> {
            let rules = Ruleset::default()
                .handle_access(AccessFs::from_all(KNOWN))?
                .handle_access(AccessNet::from_all(KNOWN))?
                .scope(Scope::from_all(KNOWN))?;
            // Nothing is allowed.
            Ok(rules.create()?.restrict_self()?.ruleset)
        };
        matches!(restrict(), Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced))
    }

    /// Gives up the rights that root has beyond other users, such as raising limits.
    pub fn drop_capabilities() {
        let none = CapabilitySet::empty();
        // This is never refused, except where there are no such rights.
        let _ =
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    }

    /// Refuses all system calls that parsing does not need. Returns whether they are refused.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub fn seccomp() -> bool {
        let filter = filter::program();
        filter.is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
    }

    /// On other processors there is no filter.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn seccomp() -> bool {
        false
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    mod filter {
        use std::collections::BTreeMap;

        use seccompiler::{
            BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
            SeccompFilter, SeccompRule, TargetArch,
        };

        /// The system calls that parsing needs: those for reading and writing open files, memory, the time, and ending.
        /// All others fail with `EPERM` instead of ending the process, because libraries try calls that they can do
        /// without.
        const ALLOWED: &[i64] = &[
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_close,
            libc::SYS_fstat,
            libc::SYS_lseek,
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_futex,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
            libc::SYS_restart_syscall,
            libc::SYS_clock_gettime,
            libc::SYS_clock_nanosleep,
            libc::SYS_nanosleep,
            libc::SYS_sched_yield,
            libc::SYS_sched_getaffinity,
            libc::SYS_getpid,
            libc::SYS_gettid,
            libc::SYS_getrandom,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ];

        /// Returns the filter.
        pub fn program() -> Result<BpfProgram, BackendError> {
            let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
                ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
            // Memory may be taken and changed, but not be made executable.
            let no_code = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
            let no_code = SeccompCondition::new(2, SeccompCmpArgLen::Dword, no_code, 0)?;
            for call in [libc::SYS_mmap, libc::SYS_mprotect] {
                rules.insert(call, vec![SeccompRule::new(vec![no_code.clone()])?]);
            }
            let arch = if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 };
            let refused = SeccompAction::Errno(libc::EPERM as u32);
            SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
        }
    }
}
