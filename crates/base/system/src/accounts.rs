//! Names of users and groups, from the configured name services.
//!
//! Every call may go over the network; callers cache the answers.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

/// Initial size of the buffer for one record; it grows while the C library reports that it is too small.
const FIRST_BUFFER_BYTES: usize = 1024;
/// A group with more members than fit here is treated as unknown.
const MAX_BUFFER_BYTES: usize = 16 << 20;

/// The name of a user; `None` if the identifier is unknown.
pub fn user_name(uid: u32) -> Option<Vec<u8>> {
    with_growing_buffer(|buffer| {
        let mut record = MaybeUninit::<libc::passwd>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are valid for the call, and the length is the buffer's.
        let code = unsafe {
            libc::getpwuid_r(uid, record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found)
        };
        // SAFETY: where `found` is not null it points to `record`, whose name is a string in `buffer`.
        (code, (!found.is_null()).then(|| unsafe { CStr::from_ptr((*found).pw_name) }.to_bytes().to_vec()))
    })
}

/// The name of a group; `None` if the identifier is unknown.
pub fn group_name(gid: u32) -> Option<Vec<u8>> {
    with_growing_buffer(|buffer| {
        let mut record = MaybeUninit::<libc::group>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are valid for the call, and the length is the buffer's.
        let code = unsafe {
            libc::getgrgid_r(gid, record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found)
        };
        // SAFETY: where `found` is not null it points to `record`, whose name is a string in `buffer`.
        (code, (!found.is_null()).then(|| unsafe { CStr::from_ptr((*found).gr_name) }.to_bytes().to_vec()))
    })
}

/// The identifier of the user called `name`.
pub fn user_id(name: &CStr) -> Option<u32> {
    user_and_login_group(name).map(|(uid, _)| uid)
}

/// The identifiers of the user called `name` and of its login group.
pub fn user_and_login_group(name: &CStr) -> Option<(u32, u32)> {
    with_growing_buffer(|buffer| {
        let mut record = MaybeUninit::<libc::passwd>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are valid for the call, `name` is NUL-terminated, and the length is the buffer's.
        let code = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                record.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        // SAFETY: where `found` is not null it points to `record`.
        (code, (!found.is_null()).then(|| unsafe { ((*found).pw_uid, (*found).pw_gid) }))
    })
}

/// The identifier of the group called `name`.
pub fn group_id(name: &CStr) -> Option<u32> {
    with_growing_buffer(|buffer| {
        let mut record = MaybeUninit::<libc::group>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are valid for the call, `name` is NUL-terminated, and the length is the buffer's.
        let code = unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                record.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        // SAFETY: where `found` is not null it points to `record`.
        (code, (!found.is_null()).then(|| unsafe { (*found).gr_gid }))
    })
}

/// Calls `look_up` with a larger buffer as long as it returns `ERANGE`.
fn with_growing_buffer<T>(mut look_up: impl FnMut(&mut [libc::c_char]) -> (i32, Option<T>)) -> Option<T> {
    let mut buffer = vec![0; FIRST_BUFFER_BYTES];
    loop {
        match look_up(&mut buffer) {
            (libc::EINTR, _) => {}
            (libc::ERANGE, _) if buffer.len() < MAX_BUFFER_BYTES => buffer.resize(buffer.len() * 4, 0),
            (_, found) => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_both_ways() {
        assert_eq!(user_name(0).as_deref(), Some(&b"root"[..]));
        assert_eq!(group_name(0).as_deref(), Some(&b"root"[..]));
        assert_eq!(user_id(c"root"), Some(0));
        assert_eq!(user_and_login_group(c"root"), Some((0, 0)));
        assert_eq!(group_id(c"root"), Some(0));
    }

    #[test]
    fn unknown_identifiers_have_no_name() {
        assert_eq!(user_name(0xfff_fff0), None);
        assert_eq!(group_name(0xfff_fff0), None);
        assert_eq!(user_id(c"no such user"), None);
        assert_eq!(group_id(c"no such group"), None);
    }
}
