//! Counters in the text format of Prometheus. No label has a value that a client
//! chooses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aside_core::event::Usage;

/// The upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    series: Mutex<Series>,
    streams: AtomicI64,
}

#[derive(Debug, Default)]
struct Series {
    /// By name, then by labels.
    counters: BTreeMap<&'static str, BTreeMap<String, u64>>,
    histograms: BTreeMap<&'static str, BTreeMap<String, Histogram>>,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

/// A reply that is being sent.
pub(crate) struct StreamGuard<'a>(&'a Metrics);

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Values that are read when the metrics are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreGauges {
    pub(crate) is_up: bool,
    pub(crate) lag_rows: u64,
    pub(crate) lost_rows: u64,
}

impl Metrics {
    fn series(&self) -> MutexGuard<'_, Series> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, name: &'static str, labels: &[(&str, &str)], amount: u64) {
        if amount > 0 {
            self.add_labelled(name, &label_text(labels), amount);
        }
    }

    fn add_labelled(&self, name: &'static str, labels: &str, amount: u64) {
        if amount > 0 {
            change(self.series().counters.entry(name).or_default(), labels, |count| *count += amount);
        }
    }

    fn observe(&self, name: &'static str, labels: &str, seconds: f64) {
        let mut series = self.series();
        change(series.histograms.entry(name).or_default(), labels, |histogram: &mut Histogram| {
            histogram.count += 1;
            histogram.sum += seconds;
            for (bucket, bound) in histogram.buckets.iter_mut().zip(BUCKETS) {
                *bucket += u64::from(seconds <= bound);
            }
        });
    }

    /// Counts a reply that begins.
    pub(crate) fn stream(&self) -> StreamGuard<'_> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        StreamGuard(self)
    }

    /// Counts a finished request.
    pub(crate) fn request(&self, client: &str, protocol: &str, dialect: &str, code: u16) {
        let code = code.to_string();
        let labels = [("client", client), ("protocol", protocol), ("dialect", dialect), ("code", code.as_str())];
        self.add("aside_requests_total", &labels, 1);
    }

    /// What a reply used, and how long it took, under the names of the GenAI conventions.
    pub(crate) fn reply(&self, dialect: &str, usage: Usage, total: f64, first_chunk: Option<f64>) {
        let labels = label_text(&[("gen_ai_provider_name", dialect)]);
        let counts = [
            ("gen_ai_client_inference_usage_input_tokens", usage.input),
            ("gen_ai_client_inference_usage_output_tokens", usage.output),
            ("gen_ai_client_inference_usage_reasoning_output_tokens", usage.reasoning),
            ("gen_ai_client_inference_usage_cache_read_input_tokens", usage.cached),
            ("gen_ai_client_inference_usage_cache_write_input_tokens", usage.cache_write),
        ];
        for (name, count) in counts {
            self.add_labelled(name, &labels, count.unwrap_or(0));
        }
        self.observe("gen_ai_client_operation_duration", &labels, total);
        if let Some(first_chunk) = first_chunk {
            self.observe("gen_ai_client_operation_time_to_first_chunk", &labels, first_chunk);
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self, store: StoreGauges) -> String {
        let mut out = String::new();
        let mut gauge = |name: &str, value: i64| {
            // Writing to a string cannot fail.
            let _ok = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
        };
        gauge("aside_store_up", i64::from(store.is_up));
        gauge("aside_store_lag_rows", i64::try_from(store.lag_rows).unwrap_or(i64::MAX));
        gauge("aside_store_lost_rows", i64::try_from(store.lost_rows).unwrap_or(i64::MAX));
        gauge("aside_streams", self.streams.load(Ordering::Relaxed));
        let series = self.series();
        for (name, rows) in &series.counters {
            let _ok = writeln!(out, "# TYPE {name} counter");
            for (labels, value) in rows {
                let _ok = writeln!(out, "{name}{{{labels}}} {value}");
            }
        }
        for (name, rows) in &series.histograms {
            let _ok = writeln!(out, "# TYPE {name} histogram");
            for (labels, histogram) in rows {
                for (bound, count) in BUCKETS.iter().zip(histogram.buckets) {
                    let _ok = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
                }
                let Histogram { count, sum, .. } = histogram;
                let _ok = writeln!(
                    out,
                    "{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}"
                );
            }
        }
        out
    }
}

/// Changes the value of these labels, which are copied only if they are new.
fn change<V: Default>(rows: &mut BTreeMap<String, V>, labels: &str, change: impl FnOnce(&mut V)) {
    match rows.get_mut(labels) {
        Some(value) => change(value),
        None => change(rows.entry(labels.to_owned()).or_default()),
    }
}

/// The values are ours and need no escapes, except for dialects, which users may name.
fn label_text(labels: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(96);
    for (at, (name, value)) in labels.iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        out.extend([separator, name, "=\""]);
        if value.contains(['\\', '"', '\n']) {
            out.push_str(&value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
        } else {
            out.push_str(value);
        }
        out.push('"');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_metrics_have_the_format_of_prometheus() {
        let metrics = Metrics::default();
        metrics.request("codex", "openai-responses", "deepseek", 200);
        metrics.request("codex", "openai-responses", "deepseek", 200);
        metrics.reply("deepseek", Usage::default().with_input(3), 0.2, None);
        let guard = metrics.stream();
        let text = metrics.text(StoreGauges { is_up: true, lag_rows: 0, lost_rows: 0 });
        drop(guard);
        for line in [
            "aside_requests_total{client=\"codex\",protocol=\"openai-responses\",dialect=\"deepseek\",code=\"200\"} 2",
            "gen_ai_client_inference_usage_input_tokens{gen_ai_provider_name=\"deepseek\"} 3",
            "gen_ai_client_operation_duration_bucket{gen_ai_provider_name=\"deepseek\",le=\"0.25\"} 1",
            "gen_ai_client_operation_duration_bucket{gen_ai_provider_name=\"deepseek\",le=\"0.1\"} 0",
            "aside_store_up 1",
            "aside_streams 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
