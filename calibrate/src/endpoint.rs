//! A live server: KServe v2 over HTTP (Triton, TorchServe, MLServer) or an OpenAI-compatible one.
//!
//! One request at a time, so that what is timed is a pass and the way there and back, not a queue.

use crate::device::{Description, Device, Fault};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// What the server speaks.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// `POST /v2/models/NAME/infer` with all items of a batch in one request.
    KServe {
        /// A request of one item; `None` generates one from the model's metadata.
        payload: Option<Value>,
        /// Length of a dimension that the metadata leave open, besides the first.
        open_dimension: u64,
    },
    /// `POST /v1/completions` with `stream`, a batch as that many prompts.
    OpenAi {
        /// The prompt.
        prompt: String,
        /// Tokens to generate.
        max_tokens: u32,
        /// Whether the time is that of the first token, or of the whole answer.
        first_token: bool,
    },
}

/// The server.
#[derive(Debug)]
pub struct Endpoint {
    agent: ureq::Agent,
    url: String,
    model: String,
    protocol: Protocol,
    item: Option<Value>,
    facts: BTreeMap<String, String>,
    body: Vec<u8>,
    batch: u32,
    begin: Instant,
}

impl Endpoint {
    /// Asks the server at `url` (`http://host:port`) for its model.
    ///
    /// # Errors
    /// A server that cannot be reached, does not know the model, or whose metadata do not say how
    /// to make a request.
    pub fn new(url: &str, model: &str, protocol: Protocol) -> Result<Self, Fault> {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(120)))
            .http_status_as_error(false)
            .build()
            .into();
        let mut it = Self {
            agent,
            url: url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            item: None,
            facts: BTreeMap::new(),
            protocol,
            body: Vec::new(),
            batch: 0,
            begin: Instant::now(),
        };
        if let Protocol::KServe { payload, open_dimension } = it.protocol.clone() {
            it.item = Some(match payload {
                Some(payload) => payload,
                None => it.generated(open_dimension)?,
            });
        }
        Ok(it)
    }

    fn get(&self, path: &str) -> Result<Value, Fault> {
        let url = format!("{}{path}", self.url);
        let failed = |e: String| Fault::Failed(format!("{url}: {e}"));
        let mut answer = self.agent.get(&url).call().map_err(|e| failed(e.to_string()))?;
        let text = answer.body_mut().read_to_string().map_err(|e| failed(e.to_string()))?;
        if !answer.status().is_success() {
            return Err(failed(format!("{} {text}", answer.status())));
        }
        serde_json::from_str(&text).map_err(|e| failed(format!("no JSON: {e}")))
    }

    /// A request of one item by what the server says of its model.
    fn generated(&mut self, open: u64) -> Result<Value, Fault> {
        let about = self.get(&format!("/v2/models/{}", self.model))?;
        for key in ["platform", "versions"] {
            if let Some(value) = about.get(key) {
                self.facts.insert(key.to_owned(), value.to_string().trim_matches('"').to_owned());
            }
        }
        let none = Vec::new();
        let inputs = about["inputs"].as_array().unwrap_or(&none);
        if inputs.is_empty() {
            return Err(Fault::Failed(format!(
                "{} does not say what inputs it takes; give a request with --payload FILE",
                self.model
            )));
        }
        let inputs: Result<Vec<Value>, Fault> =
            inputs.iter().map(|input| one_input(input, open)).collect();
        Ok(json!({ "inputs": inputs? }))
    }

    fn request(&self, batch: u32) -> Result<Value, Fault> {
        match &self.protocol {
            Protocol::KServe { .. } => repeated(self.item.as_ref().unwrap_or(&Value::Null), batch),
            Protocol::OpenAi { prompt, max_tokens, .. } => Ok(json!({
                "model": self.model,
                "prompt": vec![prompt; batch as usize],
                "max_tokens": max_tokens,
                "min_tokens": max_tokens,
                "ignore_eos": true,
                "temperature": 0,
                "stream": true,
            })),
        }
    }
}

/// An input of one item: zeros are avoided, as some servers and cards run them faster.
fn one_input(input: &Value, open: u64) -> Result<Value, Fault> {
    let name = input["name"].as_str().unwrap_or_default();
    let kind = input["datatype"].as_str().unwrap_or_default();
    let shape = input["shape"].as_array().cloned().unwrap_or_default();
    let mut shape: Vec<u64> = shape
        .iter()
        .map(|d| d.as_i64().and_then(|d| u64::try_from(d).ok()).unwrap_or(open))
        .collect();
    // The first dimension is the batch.
    if let Some(first) = shape.first_mut() {
        *first = 1;
    }
    let count: u64 = shape.iter().product();
    let data: Vec<Value> = match kind {
        "FP32" | "FP64" | "FP16" => {
            (0..count).map(|i| json!(0.1 + 0.8 * ((i * 7 % 11) as f64 / 11.0))).collect()
        }
        "INT64" | "INT32" | "INT16" | "INT8" | "UINT64" | "UINT32" | "UINT16" | "UINT8" => {
            (0..count).map(|i| json!(1 + i % 100)).collect()
        }
        "BOOL" => (0..count).map(|i| json!(i % 2 == 0)).collect(),
        "BYTES" => (0..count).map(|_| json!("a few words of text")).collect(),
        other => {
            return Err(Fault::Failed(format!(
                "input {name} is of type {other}, which is not generated; give --payload FILE"
            )));
        }
    };
    Ok(json!({ "name": name, "datatype": kind, "shape": shape, "data": data }))
}

/// The same request with `batch` items: each input's first dimension and data repeated.
fn repeated(one: &Value, batch: u32) -> Result<Value, Fault> {
    let mut request = one.clone();
    let inputs = request["inputs"].as_array_mut();
    for input in inputs.ok_or_else(|| Fault::Failed("the payload has no `inputs`".into()))? {
        let what = format!("input {} of the payload", input["name"]);
        let first = input["shape"][0].as_u64();
        let data = input["data"].as_array().cloned();
        let (Some(1), Some(data)) = (first, data) else {
            return Err(Fault::Failed(format!(
                "{what} must be one item: a shape that begins with 1, and `data`"
            )));
        };
        input["shape"][0] = json!(batch);
        input["data"] = Value::Array((0..batch).flat_map(|_| data.iter().cloned()).collect());
    }
    Ok(request)
}

impl Device for Endpoint {
    fn describe(&self) -> Description {
        let (item, mode) = match &self.protocol {
            Protocol::KServe { .. } => ("item of a request", "request to answer, concurrency 1"),
            Protocol::OpenAi { first_token: true, .. } => ("prompt", "request to first token"),
            Protocol::OpenAi { .. } => ("generation", "request to last token, concurrency 1"),
        };
        Description {
            backend: "endpoint".into(),
            device: self.url.clone(),
            model: self.model.clone(),
            item: item.into(),
            dtype: "as served".into(),
            mode: mode.into(),
            facts: self.facts.clone(),
        }
    }

    fn prepare(&mut self, batch: u32) -> Result<(), Fault> {
        if batch != self.batch {
            self.body = self.request(batch)?.to_string().into_bytes();
            self.batch = batch;
        }
        Ok(())
    }

    fn pass(&mut self, batch: u32) -> Result<u64, Fault> {
        let (path, first_token) = match &self.protocol {
            Protocol::KServe { .. } => (format!("/v2/models/{}/infer", self.model), false),
            Protocol::OpenAi { first_token, .. } => ("/v1/completions".into(), *first_token),
        };
        let url = format!("{}{path}", self.url);
        let failed = |e: String| Fault::Failed(format!("{url}: {e}"));
        let start = Instant::now();
        let request = self.agent.post(&url).header("content-type", "application/json");
        let mut answer = request.send(&self.body[..]).map_err(|e| failed(e.to_string()))?;
        let status = answer.status();
        if !status.is_success() {
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            let why = format!("{status} {}", text.chars().take(200).collect::<String>());
            // A server that ran smaller batches refuses this one: for its size, as far as it says.
            return Err(if batch > 1 { Fault::DoesNotFit { batch, why } } else { failed(why) });
        }
        let mut took = None;
        if matches!(self.protocol, Protocol::KServe { .. }) {
            answer.body_mut().read_to_vec().map_err(|e| failed(e.to_string()))?;
        } else {
            // Read to the end either way, so that the next pass finds an idle server.
            for line in BufReader::new(answer.body_mut().as_reader()).lines() {
                let line = line.map_err(|e| failed(e.to_string()))?;
                let token = line.strip_prefix("data:").is_some_and(|d| d.trim() != "[DONE]");
                if token && first_token && took.is_none() {
                    took = Some(start.elapsed());
                }
            }
        }
        let took = took.unwrap_or_else(|| start.elapsed());
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1))
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
