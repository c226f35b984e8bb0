//! A server of our own, spoken to as a real one.
#![allow(clippy::unwrap_used, reason = "tests")]

use calibrate::device::{Device, Fault};
use calibrate::endpoint::{Endpoint, Protocol};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Bodies of the requests so far.
type Seen = Arc<Mutex<Vec<Value>>>;

/// Refuses batches above 8.
fn serve() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || talk(stream.unwrap(), &kept));
        }
    });
    (url, seen)
}

fn talk(stream: TcpStream, seen: &Seen) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).unwrap() > 2 {
            let lower = line.to_lowercase();
            if let Some(n) = lower.strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let (status, kind, answer) = answer(first.split(' ').nth(1).unwrap(), &body, seen);
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
    }
}

fn answer(path: &str, body: &[u8], seen: &Seen) -> (&'static str, &'static str, String) {
    let json = "application/json";
    match path {
        "/v2/models/net" => {
            let inputs = json!([
                { "name": "x", "datatype": "FP32", "shape": [-1, 3, -1] },
                { "name": "ids", "datatype": "INT64", "shape": [-1, 2] },
            ]);
            let text = json!({ "name": "net", "platform": "test", "inputs": inputs });
            ("200 OK", json, text.to_string())
        }
        "/v2/models/net/infer" => {
            let request: Value = serde_json::from_slice(body).unwrap();
            let batch = request["inputs"][0]["shape"][0].as_u64().unwrap();
            seen.lock().unwrap().push(request);
            if batch > 8 {
                return (
                    "400 Bad Request",
                    json,
                    json!({ "error": "max_batch_size 8" }).to_string(),
                );
            }
            ("200 OK", json, json!({ "outputs": [] }).to_string())
        }
        "/v1/completions" => {
            seen.lock().unwrap().push(serde_json::from_slice(body).unwrap());
            let text = "data: {\"choices\":[]}\n\ndata: {\"choices\":[]}\n\ndata: [DONE]\n\n";
            ("200 OK", "text/event-stream", text.into())
        }
        _ => ("404 Not Found", json, json!({ "error": "no such model" }).to_string()),
    }
}

fn kserve(payload: Option<Value>) -> Protocol {
    Protocol::KServe { payload, open_dimension: 4 }
}

#[test]
fn requests_are_made_from_metadata() {
    let (url, seen) = serve();
    let mut server = Endpoint::new(&url, "net", kserve(None)).unwrap();
    assert_eq!(server.describe().facts["platform"], "test");
    server.prepare(3).unwrap();
    assert!(server.pass(3).unwrap() > 0);
    let request = seen.lock().unwrap()[0].clone();
    assert_eq!(request["inputs"][0]["shape"], json!([3, 3, 4]));
    assert_eq!(request["inputs"][0]["data"].as_array().unwrap().len(), 36);
    assert_eq!(request["inputs"][1]["shape"], json!([3, 2]));
    assert_eq!(request["inputs"][1]["data"], json!([1, 2, 1, 2, 1, 2]));
    server.prepare(9).unwrap();
    let refused = server.pass(9);
    assert!(matches!(&refused, Err(Fault::DoesNotFit { batch: 9, why }) if why.contains("size 8")));
}

#[test]
fn a_payload_is_repeated() {
    let (url, seen) = serve();
    let one = json!({ "inputs": [
        { "name": "t", "datatype": "BYTES", "shape": [1, 1], "data": ["word"] }
    ] });
    let mut server = Endpoint::new(&url, "net", kserve(Some(one))).unwrap();
    server.prepare(2).unwrap();
    server.pass(2).unwrap();
    assert_eq!(seen.lock().unwrap()[0]["inputs"][0]["data"], json!(["word", "word"]));
    let two = json!({ "inputs": [{ "name": "t", "shape": [2], "data": [1, 2] }] });
    let mut server = Endpoint::new(&url, "net", kserve(Some(two))).unwrap();
    assert!(matches!(server.prepare(2), Err(Fault::Failed(why)) if why.contains("one item")));
}

#[test]
fn tokens_are_streamed() {
    let (url, seen) = serve();
    let protocol = Protocol::OpenAi { prompt: "p".into(), max_tokens: 2, first_token: true };
    let mut server = Endpoint::new(&url, "m", protocol).unwrap();
    server.prepare(2).unwrap();
    assert!(server.pass(2).unwrap() > 0);
    let request = seen.lock().unwrap()[0].clone();
    assert_eq!(request["prompt"], json!(["p", "p"]));
    assert_eq!((&request["stream"], &request["max_tokens"]), (&json!(true), &json!(2)));
}

#[test]
fn what_is_not_there_is_said() {
    let (url, _) = serve();
    let failed = Endpoint::new(&url, "other", kserve(None)).unwrap_err();
    assert!(failed.to_string().contains("no such model"), "{failed}");
    let nobody = Endpoint::new("http://127.0.0.1:1", "net", kserve(None)).unwrap_err();
    assert!(nobody.to_string().contains("http://127.0.0.1:1/v2/models/net"), "{nobody}");
}
