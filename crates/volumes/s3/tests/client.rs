//! A client and a server that misbehaves. tests/spark shows that a real server accepts its requests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use millstream_s3::{
    Address, Client, Counts, CredentialSource, Credentials, Metadata, Object, PageRequest, Policy, Refusal,
    Settings,
};
use millstream_version::{Tag, Version};
use millstream_vfs::Timestamp;

const OBJECT: &[u8] = b"0123456789";

/// A version of so many bytes.
fn version(size: usize) -> Version {
    Version { size: size as u64, tag: Tag::pack(b"v"), ..Version::default() }
}

/// What the server does with a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Answers with a status, and a body that is cut off after that many bytes.
    Answer(u16, &'static str, &'static str, usize),
    /// Answers with the bytes after an offset of the object, cut off after that many bytes.
    Part(usize, &'static str, usize),
    /// Answers with a body of unknown length, in chunks.
    Chunked(&'static str),
    /// Closes the connection.
    Hang,
}

const WHOLE: usize = usize::MAX;
const fn ok(body: &'static str) -> Act {
    Act::Answer(200, "ETag: \"v\"\r\n", body, WHOLE)
}
const fn error(status: u16, body: &'static str) -> Act {
    Act::Answer(status, "", body, WHOLE)
}

struct Server {
    port: u16,
    /// Heads of requests, and their bodies.
    heads: Arc<Mutex<Vec<String>>>,
    running: JoinHandle<()>,
}

/// A server that handles one request per act.
fn server(acts: &[Act]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let (mut acts, seen) = (VecDeque::from(acts.to_vec()), Arc::clone(&heads));
    let running = std::thread::spawn(move || {
        let mut rest = acts.len();
        while rest > 0 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    match reader.read_line(&mut head) {
                        Ok(0) => break,
                        Ok(_) => {}
                        // A client that refuses an answer closes the connection with bytes of it unread.
                        Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                        Err(error) => panic!("a request: {error}"),
                    }
                }
                if head.is_empty() {
                    break;
                }
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.parse().expect("a length"))
                });
                let mut body = vec![0; length.unwrap_or(0)];
                reader.read_exact(&mut body).expect("a body");
                head.push_str(&String::from_utf8(body).expect("text"));
                seen.lock().expect("heads").push(head);
                rest -= 1;
                let (status, headers, body, cut) = match acts.pop_front() {
                    Some(Act::Answer(status, headers, body, cut)) => (status, headers.to_owned(), body, cut),
                    Some(Act::Part(start, body, cut)) => {
                        let range = format!(
                            "Content-Range: bytes {start}-{}/{}",
                            start + body.len() - 1,
                            OBJECT.len()
                        );
                        (206, format!("ETag: \"v\"\r\n{range}\r\n"), body, cut)
                    }
                    Some(Act::Chunked(body)) => {
                        let head = "HTTP/1.1 200 X\r\nETag: \"v\"\r\nTransfer-Encoding: chunked\r\n\r\n";
                        let answer = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
                        stream.write_all(answer.as_bytes()).expect("an answer");
                        continue;
                    }
                    Some(Act::Hang) | None => break,
                };
                let sent = &body[..body.len().min(cut)];
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{sent}");
                // In one piece: a client that has read enough to refuse the answer closes the connection.
                stream.write_all(answer.as_bytes()).expect("an answer");
                if sent != body || rest == 0 {
                    break;
                }
            }
        }
    });
    Server { port, heads, running }
}

struct Given(Option<Credentials>);

impl CredentialSource for Given {
    fn credentials(&self) -> Option<Credentials> {
        self.0.clone()
    }
}

fn settings(port: u16) -> Settings {
    Settings {
        address: Address::new(&format!("http://127.0.0.1:{port}/bed/")).expect("an address"),
        region: "us-east-1".into(),
        user_agent: "test".into(),
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_secs(5),
        retries: 9,
        throttle_retries: 9,
        connections: 4,
        certificates: Vec::new(),
        policy: Policy::WITH_FALLBACK,
    }
}

fn key() -> Option<Credentials> {
    Some(Credentials::Key { id: "id".into(), secret: "hush".into(), token: "token".into() })
}

fn client_of(port: u16, credentials: Option<Credentials>) -> Client {
    Client::new(settings(port), Box::new(Given(credentials)))
}

fn client(port: u16) -> Client {
    client_of(port, key())
}

fn get(client: &Client, offset: u64, buffer: &mut [u8]) -> (Result<(), Refusal>, Counts) {
    let mut counts = Counts::default();
    let result = client.get(b"a b/c", &version(OBJECT.len()), offset, buffer, &mut counts);
    (result, counts)
}

/// Reads the whole object; the result, its cost and the requests.
fn whole(acts: &[Act]) -> (Result<(), Refusal>, Counts, Vec<String>) {
    let server = server(acts);
    let mut buffer = [0; OBJECT.len()];
    let (result, counts) = get(&client(server.port), 0, &mut buffer);
    if result.is_ok() {
        assert_eq!(buffer, OBJECT);
    }
    server.running.join().expect("the server");
    let heads = server.heads.lock().expect("heads").clone();
    (result, counts, heads)
}

fn costs(requests: u32, retries: u32, throttled: u32) -> Counts {
    Counts { requests, retries, throttled }
}

#[test]
fn a_whole_object_is_one_signed_request_for_its_version() {
    let (result, counts, heads) = whole(&[ok("0123456789")]);
    assert_eq!((result, counts), (Ok(()), costs(1, 0, 0)));
    let head = heads[0].to_lowercase();
    for part in [
        "get /bed/a%20b/c http/1.1",
        "if-match: \"v\"",
        "x-amz-security-token: token",
        "user-agent: test",
        "authorization: aws4-",
    ] {
        assert!(head.contains(part), "{part} in {head}");
    }
    assert!(!head.contains("range:") && !head.contains("hush"), "{head}");
}

#[test]
fn connections_are_kept() {
    let server = server(&[Act::Part(2, "234", WHOLE), Act::Part(5, "567", WHOLE)]);
    let client = client(server.port);
    for (offset, expected) in [(2, b"234"), (5, b"567")] {
        let mut buffer = [0; 3];
        assert_eq!(get(&client, offset, &mut buffer), (Ok(()), costs(1, 0, 0)));
        assert_eq!(&buffer, expected);
    }
    server.running.join().expect("the server, which leaves a connection after its last request only");
    assert!(server.heads.lock().expect("heads")[1].to_lowercase().contains("range: bytes=5-7"));
}

#[test]
fn a_body_that_ends_early_is_asked_for_again_from_there() {
    let (result, counts, heads) = whole(&[
        Act::Answer(200, "ETag: \"v\"\r\n", "0123456789", 4),
        Act::Part(4, "456789", 1),
        Act::Part(5, "56789", WHOLE),
    ]);
    assert_eq!((result, counts), (Ok(()), costs(3, 2, 0)));
    assert!(heads[1].to_lowercase().contains("range: bytes=4-9"), "{heads:?}");
    assert!(heads[2].to_lowercase().contains("range: bytes=5-9"), "{heads:?}");
}

#[test]
fn requests_that_fail_for_now_are_repeated_a_few_times() {
    for (act, throttled, most) in [
        (Act::Hang, 0, 3),
        (error(500, ""), 0, 3),
        (error(503, "<Error><Code>SlowDown</Code></Error>"), 1, 8),
        (error(429, ""), 1, 8),
    ] {
        let (result, counts, _) = whole(&[act, ok("0123456789")]);
        assert_eq!((result, counts), (Ok(()), costs(2, 1, throttled)), "{act:?}");
        let (result, counts, _) = whole(&vec![act; most as usize]);
        assert!(result.is_err(), "{act:?}");
        assert_eq!(counts, costs(most, most - 1, most * throttled), "{act:?}");
    }
}

#[test]
fn settings_limit_the_retries() {
    for (act, throttled, retries) in [(error(500, ""), 0, 1), (error(503, ""), 1, 3)] {
        let server = server(&vec![act; 8]);
        let few = Settings { retries: 1, throttle_retries: 3, ..settings(server.port) };
        let client = Client::new(few, Box::new(Given(key())));
        let (result, counts) = get(&client, 0, &mut [0; OBJECT.len()]);
        assert!(result.is_err(), "{act:?}");
        assert_eq!(counts, costs(retries + 1, retries, (retries + 1) * throttled), "{act:?}");
    }
}

#[test]
fn a_body_of_unknown_length_is_the_object_or_nothing() {
    assert_eq!(whole(&[Act::Chunked("0123456789")]).0, Ok(()));
    let longer = Refusal::Malformed("the response is longer or shorter than the requested range");
    assert_eq!(whole(&[Act::Chunked("0123456789x")]).0, Err(longer));
    let (result, counts, _) = whole(&[Act::Chunked("01234"), Act::Part(5, "56789", WHOLE)]);
    assert_eq!((result, counts), (Ok(()), costs(2, 1, 0)));
}

#[test]
fn another_range_is_refused() {
    for (act, refusal) in [
        (Act::Part(3, "234", WHOLE), Refusal::Malformed("the response has a different range")),
        (
            error(206, "234"),
            Refusal::Malformed("the response has a different version, or none: the server ignores If-Match"),
        ),
        (ok("0123456789"), Refusal::Answer { status: 200, code: String::new() }),
    ] {
        let server = server(&[act]);
        assert_eq!(get(&client(server.port), 2, &mut [0; 3]).0, Err(refusal), "{act:?}");
    }
}

#[test]
fn other_answers_are_left_to_the_real_client() {
    let code = "<Error><Code>NoSuchKey</Code></Error>";
    for (act, refusal) in [
        (error(404, code), Refusal::Answer { status: 404, code: "NoSuchKey".into() }),
        (error(412, ""), Refusal::Answer { status: 412, code: String::new() }),
        (error(301, ""), Refusal::Answer { status: 301, code: String::new() }),
        (Act::Part(0, "0123456789", WHOLE), Refusal::Answer { status: 206, code: String::new() }),
        (
            Act::Answer(200, "ETag: \"w\"\r\n", "0123456789", WHOLE),
            Refusal::Malformed("the response has a different version, or none: the server ignores If-Match"),
        ),
        (ok("01234567890"), Refusal::Malformed("the response is longer or shorter than the requested range")),
    ] {
        assert_eq!(whole(&[act]).0, Err(refusal), "{act:?}");
    }
}

#[test]
fn a_client_whose_first_request_is_refused_makes_no_other() {
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    for (status, body, is_useful) in
        [(403, "", false), (301, "", false), (403, denied, true), (404, "", true), (412, "", true)]
    {
        let server = server(&[error(status, body)]);
        let client = client(server.port);
        let mut buffer = [0; OBJECT.len()];
        assert!(get(&client, 0, &mut buffer).0.is_err());
        assert_eq!(client.reads(), is_useful, "{status}");
        if !is_useful {
            assert_eq!(get(&client, 0, &mut buffer), (Err(Refusal::Unused), Counts::default()));
        }
    }
    let server = server(&[ok("0123456789"), error(403, "")]);
    let client = client(server.port);
    let mut buffer = [0; OBJECT.len()];
    assert_eq!(get(&client, 0, &mut buffer).0, Ok(()));
    assert!(get(&client, 0, &mut buffer).0.is_err());
    assert!(client.reads() && client.lists());
}

#[test]
fn nobody_signs_nothing_and_without_credentials_there_is_no_request() {
    let server = server(&[ok("0123456789")]);
    let mut buffer = [0; OBJECT.len()];
    assert_eq!(get(&client_of(server.port, Some(Credentials::Anonymous)), 0, &mut buffer).0, Ok(()));
    assert!(!server.heads.lock().expect("heads")[0].to_lowercase().contains("authorization"));
    assert_eq!(get(&client_of(1, None), 0, &mut buffer).0, Err(Refusal::Credentials));
}

/// Fetches the object in pieces of up to four bytes; the bytes that were taken, before the one at `end`.
fn fetched(acts: &[Act], end: u64) -> (Result<Metadata, Refusal>, Counts, Vec<u8>) {
    let server = server(acts);
    let (mut counts, mut taken) = (Counts::default(), Vec::new());
    let (client, version) = (client(server.port), version(OBJECT.len()));
    let whole = 0..OBJECT.len() as u64;
    let result = client.fetch(b"k", &version, whole, &mut [0; 4], &mut counts, |piece, at| {
        assert_eq!(at, taken.len() as u64, "in order");
        if at < end {
            taken.extend_from_slice(piece);
        }
        at < end
    });
    server.running.join().expect("the server");
    (result, counts, taken)
}

#[test]
fn an_object_is_fetched_in_pieces_with_its_metadata() {
    let headers = "ETag: \"v\"\r\nx-amz-meta-Millstream-Mtime: 1.5\r\nX-Amz-Meta-Other: \u{e9}\r\n";
    let (result, counts, taken) = fetched(&[Act::Answer(200, headers, "0123456789", WHOLE)], u64::MAX);
    assert_eq!(result, Ok(vec![("millstream-mtime".into(), "1.5".into())]));
    assert_eq!((counts, taken.as_slice()), (costs(1, 0, 0), OBJECT));
    // The rest of the object is requested where the body ended, and no byte is passed on twice.
    let cut = Act::Answer(200, "ETag: \"v\"\r\n", "0123456789", 7);
    let (result, counts, taken) = fetched(&[cut, Act::Part(7, "789", WHOLE)], u64::MAX);
    assert_eq!((result, counts, taken.as_slice()), (Ok(Vec::new()), costs(2, 1, 0), OBJECT));
}

#[test]
fn a_part_of_an_object_is_fetched_with_the_metadata_of_all() {
    let server = server(&[Act::Part(4, "4567", 2), Act::Part(6, "67", WHOLE)]);
    let (mut counts, mut taken) = (Counts::default(), Vec::new());
    let (client, version) = (client(server.port), version(OBJECT.len()));
    let part = 4..8;
    let result = client.fetch(b"k", &version, part, &mut [0; 4], &mut counts, |piece, at| {
        assert_eq!(at, 4 + taken.len() as u64, "in order");
        taken.extend_from_slice(piece);
        true
    });
    server.running.join().expect("the server");
    assert_eq!((result, counts, taken.as_slice()), (Ok(Vec::new()), costs(2, 1, 0), &OBJECT[4..8]));
}

#[test]
fn what_is_not_taken_is_not_asked_for_again() {
    let (result, counts, _) = fetched(&[ok("0123456789")], 1);
    assert_eq!((result, counts), (Err(Refusal::NotTaken), costs(1, 0, 0)));
}

/// Puts an object; the result, its cost and the requests.
fn put(acts: &[Act]) -> (Result<(), Refusal>, Counts, Vec<String>) {
    let server = server(acts);
    let mut counts = Counts::default();
    let headers = [("x-amz-meta-millstream-mtime".to_owned(), "1.5".to_owned())];
    let result = client(server.port).put(b"a b/c", OBJECT, &headers, &mut counts);
    server.running.join().expect("the server");
    let heads = server.heads.lock().expect("heads").clone();
    (result, counts, heads)
}

#[test]
fn an_object_is_put_by_one_request_with_its_hash() {
    let (result, counts, heads) = put(&[Act::Answer(200, "ETag: \"w\"\r\n", "", WHOLE)]);
    assert_eq!((result, counts), (Ok(()), costs(1, 0, 0)));
    let (head, body) = heads[0].split_once("\r\n\r\n").expect("a body");
    assert_eq!(body.as_bytes(), OBJECT);
    assert!(head.starts_with("PUT /bed/a%20b/c HTTP/1.1\r\n"), "{head}");
    let head = head.to_lowercase();
    // printf 0123456789 | sha256sum
    let hash = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
    for line in
        [&format!("x-amz-content-sha256: {hash}"), "x-amz-meta-millstream-mtime: 1.5", "content-length: 10"]
    {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    assert!(
        head.contains("signedheaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta-millstream-mtime;"),
        "{head}"
    );
}

#[test]
fn a_put_that_fails_for_now_is_repeated_and_another_is_left_to_the_real_client() {
    let (result, counts, heads) =
        put(&[error(503, "<Code>SlowDown</Code>"), Act::Hang, Act::Answer(200, "", "", WHOLE)]);
    assert_eq!((result, counts), (Ok(()), costs(3, 2, 1)));
    assert!(heads.iter().all(|request| request.ends_with("\r\n\r\n0123456789")), "each has the whole body");
    let (result, counts, _) = put(&[error(403, "<Code>AccessDenied</Code>")]);
    let denied = Refusal::Answer { status: 403, code: "AccessDenied".into() };
    assert_eq!((result, counts), (Err(denied), costs(1, 0, 0)));
}

#[test]
fn a_page_that_is_cut_off_is_asked_for_again() {
    let xml = "<ListBucketResult><IsTruncated>false</IsTruncated><CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>";
    let server = server(&[Act::Answer(200, "", xml, 40), error(200, xml)]);
    let asked = PageRequest { prefix: b"a b", delimiter: b"/", after: b"a b+", ..PageRequest::default() };
    let mut counts = Counts::default();
    let page = client(server.port).page(&asked, &mut counts).expect("a page");
    assert_eq!((page.prefixes, page.next, counts), (vec!["p/".to_owned()], None, costs(2, 1, 0)));
    let head = &server.heads.lock().expect("heads")[1];
    let query = "GET /bed?delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=a%20b&start-after=a%20b%2B HTTP/1.1";
    assert!(head.starts_with(query), "{head}");
}

/// A client without another one to fall back on, and a server of these acts.
fn alone(acts: &[Act]) -> (Client, Server) {
    let server = server(acts);
    let settings = Settings { policy: Policy::WITHOUT_FALLBACK, ..settings(server.port) };
    (Client::new(settings, Box::new(Given(key()))), server)
}

fn heads(server: Server) -> Vec<String> {
    server.running.join().expect("the server");
    let heads = server.heads.lock().expect("heads");
    heads.iter().map(|head| head.to_lowercase()).collect()
}

#[test]
fn a_client_that_is_alone_is_patient_and_never_gives_a_kind_of_request_up() {
    let denied = error(403, "<Error><Code>AccessDenied</Code></Error>");
    let mut acts = vec![denied; 20];
    acts.extend([error(500, ""); 4]);
    acts.push(ok("0123456789"));
    let (client, server) = alone(&acts);
    let mut buffer = [0; OBJECT.len()];
    for _ in 0..20 {
        assert!(matches!(get(&client, 0, &mut buffer).0, Err(Refusal::Answer { status: 403, .. })));
    }
    assert_eq!(get(&client, 0, &mut buffer), (Ok(()), costs(5, 4, 0)));
    assert_eq!(heads(server).len(), 25);
}

#[test]
fn the_head_of_an_object_tells_what_it_is() {
    let about = "ETag: \"v\"\r\nLast-Modified: Thu, 01 Jan 1970 00:01:40 GMT\r\nContent-Type: text/csv\r\nx-amz-meta-A: 1\r\n";
    let (client, server) = alone(&[Act::Answer(200, about, "", WHOLE), error(404, "")]);
    let mut counts = Counts::default();
    let expected = Object {
        version: Version { mtime: Timestamp { sec: 100, nsec: 0 }, ..version(0) },
        headers: vec![("content-type".into(), "text/csv".into())],
        metadata: vec![("a".into(), "1".into())],
    };
    assert_eq!(client.head(b"k", &mut counts), Ok(expected));
    assert!(matches!(client.head(b"k", &mut counts), Err(Refusal::Answer { status: 404, .. })));
    assert!(heads(server)[0].starts_with("head /bed/k "));
}

#[test]
fn an_opened_part_is_read_as_it_comes() {
    let about = "ETag: \"v\"\r\nLast-Modified: Thu, 01 Jan 1970 00:01:40 GMT\r\n";
    let (client, server) =
        alone(&[Act::Answer(200, about, "0123456789", WHOLE), Act::Answer(412, "", "", WHOLE)]);
    let mut counts = Counts::default();
    let mut opened = client.open(b"k", &version(10), 0..10, &mut counts).expect("an object");
    assert_eq!((opened.object.version.size, opened.object.version.mtime.sec), (10, 100));
    let mut content = Vec::new();
    opened.read_to_end(&mut content).expect("its content");
    assert_eq!(content, OBJECT);
    let other = client.open(b"k", &version(10), 0..10, &mut counts).map(|_| ());
    assert!(matches!(other, Err(Refusal::Answer { status: 412, .. })));
    assert!(heads(server)[1].contains("if-match: \"v\""));
}

#[test]
fn an_upload_in_parts_is_begun_written_and_completed() {
    const TAGGED: &str = "ETag: \"p&1\"\r\n";
    let (client, server) = alone(&[
        ok("<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>"),
        Act::Answer(200, TAGGED, "", WHOLE),
        ok("<Error><Code>InternalError</Code></Error>"),
        ok("<CompleteMultipartUploadResult><ETag>&quot;x&quot;</ETag></CompleteMultipartUploadResult>"),
        ok("<Error><Code>InvalidPart</Code></Error>"),
        Act::Answer(204, "", "", WHOLE),
        ok("<InitiateMultipartUploadResult/>"),
    ]);
    let mut counts = Counts::default();
    let time = [("x-amz-meta-t".to_owned(), "5".to_owned())];
    assert_eq!(client.begin_upload(b"k", &time, &mut counts).as_deref(), Ok("u/1"));
    let part = client.put_part(b"k", "u/1", 7, b"body", &mut counts).expect("a part");
    assert_eq!(client.complete_upload(b"k", "u/1", &[part], &mut counts), Ok(()), "after one more attempt");
    let wrong = client.complete_upload(b"k", "u/1", &[], &mut counts);
    assert_eq!(wrong, Err(Refusal::Answer { status: 200, code: "InvalidPart".into() }));
    assert_eq!(client.abort_upload(b"k", "u/1", &mut counts), Ok(()));
    assert!(matches!(client.begin_upload(b"k", &time, &mut counts), Err(Refusal::Malformed(_))));
    let heads = heads(server);
    assert!(
        heads[0].starts_with("post /bed/k?uploads= ") && heads[0].contains("x-amz-meta-t: 5"),
        "{}",
        heads[0]
    );
    assert!(heads[1].starts_with("put /bed/k?partnumber=7&uploadid=u%2f1 "), "{}", heads[1]);
    assert!(heads[3].ends_with(
        "<partnumber>1</partnumber><etag>&quot;p&amp;1&quot;</etag></part></completemultipartupload>"
    ));
    assert!(heads[5].starts_with("delete /bed/k?uploadid=u%2f1 "), "{}", heads[5]);
}

#[test]
fn the_server_copies_a_version_and_deletes_an_object() {
    let (client, server) = alone(&[
        ok("<CopyObjectResult><ETag>&quot;x&quot;</ETag></CopyObjectResult>"),
        Act::Answer(204, "", "", WHOLE),
    ]);
    let mut counts = Counts::default();
    let source = Client::copy_source("other", b"a b/c");
    assert_eq!(client.copy(b"k", &source, &Tag::pack(b"v"), &[], &mut counts), Ok(()));
    assert_eq!(client.delete(b"k", &mut counts), Ok(()));
    let heads = heads(server);
    for part in [
        "x-amz-copy-source: /other/a%20b/c",
        "x-amz-copy-source-if-match: \"v\"",
        "x-amz-metadata-directive: replace",
    ] {
        assert!(heads[0].contains(part), "{part} in {}", heads[0]);
    }
    assert!(heads[1].starts_with("delete /bed/k "));
}
