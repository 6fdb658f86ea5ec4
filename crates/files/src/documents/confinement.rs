//! The parsing process gives up rights before it reads a document. This module does that.
//!
//! Limits of the operating system apply on all Unix systems. On Linux, two further mechanisms each prevent the parser
//! from opening files. Landlock removes all rights to paths and TCP ports. A filter of system calls (seccomp) refuses
//! everything that parsing does not need, including connections, new processes, and raising the limits (which root
//! could do otherwise). Old kernels and some containers don't support these two mechanisms. On such systems, only the
//! limits apply, and `tiro doctor` reports this.

use std::io;

use serde::{Deserialize, Serialize};

#[cfg(unix)]
use super::{MEMORY, PATIENCE};

/// The mechanisms that confine the parsing process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Whether there are limits on memory, processor time, open files, written bytes and processes.
    pub limits: bool,
    /// Whether the process has no right to any path, and to no TCP port if the kernel supports this.
    pub landlock: bool,
    /// Whether only the system calls that parsing needs are allowed.
    pub seccomp: bool,
}

/// Gives up the rights that parsing does not need. The rights can't be regained, so this function is called only in a
/// process with a single thread that does nothing but parse. Returns the confinement that applies from now on.
///
/// On Windows, no rights are given up, and only the time is limited, by the waiting process. On Unix systems other than
/// Linux, the memory may stay unlimited.
///
/// # Errors
///
/// On Linux, the errors of setting limits.
pub fn confine() -> io::Result<Confinement> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // Setting up Landlock needs an open file for a moment, so it must be done before the limits forbid this.
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
        // Open files stay open. With this limit, no other file and no connection can be opened, not even after an open
        // file was closed.
        (Resource::Nofile, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Cpu, PATIENCE.as_secs()),
        (Resource::As, MEMORY),
    ];
    for (resource, most) in limits {
        // If a process ignores the signal of the soft limit, the hard limit ends it a second later.
        let hard = if matches!(resource, Resource::Cpu) { most + 1 } else { most };
        let set = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(hard) });
        if cfg!(target_os = "linux") {
            set?;
        }
    }
    Ok(())
}

/// The mechanisms that exist only on Linux.
#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
    };
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    /// The version of Landlock that is used. On an older kernel, only the rights that the kernel knows are removed.
    const KNOWN: ABI = ABI::V7;

    /// Removes all rights to paths, ports and other processes. Returns whether at least the rights to paths were
    /// removed.
    pub fn landlock() -> bool {
        let restrict = || -> Result<RulesetStatus, RulesetError> {
            let rules = Ruleset::default()
                .handle_access(AccessFs::from_all(KNOWN))?
                .handle_access(AccessNet::from_all(KNOWN))?
                .scope(Scope::from_all(KNOWN))?;
            // No rule is added, so nothing is allowed.
            Ok(rules.create()?.restrict_self()?.ruleset)
        };
        matches!(restrict(), Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced))
    }

    /// Gives up the additional rights of root, such as raising limits.
    pub fn drop_capabilities() {
        let none = CapabilitySet::empty();
        // This fails only on systems without such rights.
        let _ =
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    }

    /// Makes the kernel refuse all system calls that parsing does not need. Returns whether this succeeded.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub fn seccomp() -> bool {
        let filter = filter::program();
        filter.is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
    }

    /// Does nothing: there is no filter for other processors.
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

        /// The system calls that parsing needs: reading and writing open files, memory, the time, and ending the
        /// process. All other calls fail with `EPERM`. A refused call doesn't end the process, because libraries try
        /// some calls that they don't really need.
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
            // The process may allocate and change memory, but not make it executable.
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
