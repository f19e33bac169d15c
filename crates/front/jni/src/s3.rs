//! `io.millstream.hadoop.s3a.NativeBucket`, which documents the format of pages.
//!
//! A scan may read from a client whose file system is being closed, so Java refers to it by a number
//! ([`crate::numbered`]).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jni::objects::{GlobalRef, JByteArray, JClass, JObject, JObjectArray, JString};
use jni::sys::{JNI_FALSE, jboolean, jbyteArray, jint, jlong};
use jni::{JNIEnv, JavaVM};
use millstream_s3::{
    Address, Client, Counts, CredentialSource, Credentials, Page, PageRequest, Policy, Settings,
};
use millstream_wire::Encoder;

use crate::arrays::{array, bytes};
use crate::numbered::Numbered;
use crate::upcall::call;
use crate::{Failure, guard};

static CLIENTS: LazyLock<Numbered<Client>> = LazyLock::new(Numbered::default);

/// The client with this number; `None` once it is closed.
pub(crate) fn client(number: jlong) -> Option<Arc<Client>> {
    CLIENTS.get(number)
}

/// A `NativeBucket.CredentialSource`.
struct JavaCredentials {
    vm: JavaVM,
    source: GlobalRef,
}

impl CredentialSource for JavaCredentials {
    fn credentials(&self) -> Option<Credentials> {
        call(&self.vm, |env| {
            let array = env.call_method(&self.source, "credentials", "()[Ljava/lang/String;", &[])?.l()?;
            let array = JObjectArray::from(array);
            if env.get_array_length(&array)? == 0 {
                return Ok(Credentials::Anonymous);
            }
            let mut text = |index| text_at(env, &array, index);
            Ok(Credentials::Key { id: text(0)?, secret: text(1)?, token: text(2)? })
        })
    }
}

/// An element of an array of strings.
pub(crate) fn text_at(
    env: &mut JNIEnv<'_>,
    array: &JObjectArray<'_>,
    index: jint,
) -> jni::errors::Result<String> {
    let value = JString::from(env.get_object_array_element(array, index)?);
    let text = env.get_string(&value)?.into();
    env.delete_local_ref(value)?;
    Ok(text)
}

/// A page as Java reads it.
fn encode(page: &Page, counts: Counts) -> Vec<u8> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut out = Encoder::with_capacity(64 * (page.items.len() + page.prefixes.len() + 1));
    out.u32(counts.requests);
    out.u32(counts.throttled);
    out.prefixed(page.next.as_deref().unwrap_or_default().as_bytes());
    out.u32(count(page.items.len()));
    for item in &page.items {
        out.prefixed(item.key.as_bytes());
        out.u64(item.version.size);
        out.i64(item.version.mtime.as_millis());
        out.prefixed(item.version.tag.as_bytes());
    }
    out.u32(count(page.prefixes.len()));
    for prefix in &page.prefixes {
        out.prefixed(prefix.as_bytes());
    }
    out.into_bytes()
}

/// `static native long open(String url, String region, String userAgent, int connectMillis, int readMillis, int
/// retries, int throttleRetries, int connections, byte[][] certificates, CredentialSource credentials)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    url: JString<'local>,
    region: JString<'local>,
    user_agent: JString<'local>,
    connect_millis: jint,
    read_millis: jint,
    retries: jint,
    throttle_retries: jint,
    connections: jint,
    certificates: JObjectArray<'local>,
    credentials: JObject<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let url: String = env.get_string(&url)?.into();
        let mut trusted = Vec::new();
        for index in 0..env.get_array_length(&certificates)? {
            let der = JByteArray::from(env.get_object_array_element(&certificates, index)?);
            trusted.push(bytes(env, &der)?);
            env.delete_local_ref(der)?;
        }
        let millis = |millis: jint| Duration::from_millis(u64::try_from(millis).unwrap_or(0).max(1));
        let settings = Settings {
            address: Address::new(&url).ok_or(Failure::Argument("not the address of a bucket"))?,
            region: env.get_string(&region)?.into(),
            user_agent: env.get_string(&user_agent)?.into(),
            connect_timeout: millis(connect_millis),
            read_timeout: millis(read_millis),
            retries: u32::try_from(retries).unwrap_or(0),
            throttle_retries: u32::try_from(throttle_retries).unwrap_or(0),
            connections: usize::try_from(connections).unwrap_or(0),
            certificates: trusted,
            policy: Policy::WITH_FALLBACK,
        };
        let credentials =
            JavaCredentials { vm: env.get_java_vm()?, source: env.new_global_ref(&credentials)? };
        Ok(CLIENTS.add(Client::new(settings, Box::new(credentials))))
    })
}

/// `static native byte[] page(long number, byte[] prefix, byte[] delimiter, byte[] after, byte[] next)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_page<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
    prefix: JByteArray<'local>,
    delimiter: JByteArray<'local>,
    after: JByteArray<'local>,
    next: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let client = client(number).ok_or(Failure::Unreadable("the client is closed".into()))?;
        let [prefix, delimiter, after, next] =
            [prefix, delimiter, after, next].map(|bytes| env.convert_byte_array(&bytes));
        let (prefix, delimiter, after, next) = (prefix?, delimiter?, after?, next?);
        let (prefix, delimiter, after, next) = (&prefix, &delimiter, &after, &next);
        let asked = PageRequest { prefix, delimiter, after, next, is_probe: false };
        let mut counts = Counts::default();
        let page =
            client.page(&asked, &mut counts).map_err(|refusal| Failure::Unreadable(refusal.to_string()))?;
        array(env, &encode(&page, counts))
    })
}

/// `static native boolean lists(long number)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_lists<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
) -> jboolean {
    guard(&mut env, JNI_FALSE, |_| Ok(jboolean::from(client(number).is_some_and(|client| client.lists()))))
}

/// `static native boolean reads(long number)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_reads<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
) -> jboolean {
    guard(&mut env, JNI_FALSE, |_| Ok(jboolean::from(client(number).is_some_and(|client| client.reads()))))
}

/// `static native boolean writes(long number)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_writes<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
) -> jboolean {
    guard(&mut env, JNI_FALSE, |_| Ok(jboolean::from(client(number).is_some_and(|client| client.writes()))))
}

/// `static native void close(long number)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeBucket_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
) {
    guard(&mut env, (), |_| {
        // Dropped after the lock: connections are closed then.
        drop(CLIENTS.close(number));
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use millstream_s3::Item;
    use millstream_version::{Tag, Version};
    use millstream_vfs::Timestamp;

    use super::*;

    /// Java's test `pagesAreTheSharedVector` decodes these.
    #[test]
    fn pages_are_the_shared_vector() {
        let version = Version {
            tag: Tag::pack(b"\"d41d8cd98f00b204e9800998ecf8427e-3\""),
            ..Version::at(1 << 40, Timestamp::from_millis(-4))
        };
        let page = Page {
            items: vec![
                Item { key: "a/\u{e9}".into(), version },
                Item { key: "b".into(), ..Item::default() },
            ],
            prefixes: vec!["c/".into()],
            next: Some("t".into()),
        };
        let counts = Counts { requests: 3, retries: 2, throttled: 1 };
        assert_eq!(encode(&page, counts), millstream_wire::vector("s3-page.hex"));
    }
}
