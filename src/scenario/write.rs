//! A resolved scenario as it could be written, every default filled in.

use super::file::{
    ArrivalsTable, AxisTable, ClientTable, CurveTable, EndText, File, OverheadTable, PolicyTable,
    QueueLimit, RunTable, ServerTable, ThresholdTable, WarmupText, WrittenTune,
};
use super::{CurvePoints, End, Overhead, Scenario, Warmup};
use crate::arrivals::Items;
use crate::units::{Fraction, Rate};

impl Scenario {
    /// The scenario in its written form, with every default filled in and every cost file read
    /// in; as JSON it reads back to the same scenario.
    ///
    /// Traces are named as the scenario names them. A precision is left out where the scenario
    /// gave none, since the default depends on the study.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        // Only maps with keys that are not texts cannot be written, and there are none.
        serde_json::to_value(self.written()).unwrap_or_default()
    }

    fn written(&self) -> File {
        let run = &self.run;
        let given = run.precision_given.then_some(run.precision).and_then(Fraction::new);
        File {
            schema: 1,
            name: self.name.clone(),
            seed: self.seed,
            run: RunTable {
                precision: given,
                requests: run.requests,
                duration: run.duration,
                replications: Some(run.replications),
                warmup: Some(match run.warmup {
                    Warmup::Auto => WarmupText::Auto,
                    Warmup::Time(time) => WarmupText::Time(time),
                }),
                max_requests: run.max_requests,
                end: Some(match run.end {
                    End::Flush => EndText::Flush,
                    End::Cut => EndText::Cut,
                }),
                exact_latencies: Some(run.exact_latencies),
            },
            curve: self.curve.as_ref().map(|curve| {
                let (loads, rates) = match &curve.points {
                    CurvePoints::Loads(loads) => (Some(loads.clone()), None),
                    CurvePoints::Rates(rates) => {
                        let rates = rates.iter().filter_map(|r| Rate::per_second(*r));
                        (None, Some(rates.collect()))
                    }
                };
                CurveTable { loads, rates, precision: Fraction::new(curve.precision) }
            }),
            arrivals: self.arrivals.iter().map(ArrivalsTable::from).collect(),
            server: self.servers.iter().map(ServerTable::from).collect(),
            client: ClientTable { before: self.client.before, after: self.client.after },
            policy: self.policies.iter().map(PolicyTable::from).collect(),
            threshold: self.thresholds.iter().map(ThresholdTable::from).collect(),
            sweep: self.sweep.iter().map(AxisTable::from).collect(),
            tune: self.tune.as_ref().map(WrittenTune::from),
        }
    }
}

impl From<&super::Source> for ArrivalsTable {
    fn from(source: &super::Source) -> Self {
        Self {
            name: source.name.clone(),
            class: source.class.clone(),
            timeout: source.timeout,
            priority: (source.priority > 0).then_some(source.priority),
            items: (source.items != Items::default()).then_some(source.items),
            shape: source.shape.clone(),
            process: source.process.clone(),
        }
    }
}

impl From<&super::Server> for ServerTable {
    fn from(server: &super::Server) -> Self {
        Self {
            label: server.label.clone(),
            instances: Some(server.instances),
            replicas: (server.replicas > 1).then_some(server.replicas),
            balancer: (server.replicas > 1).then_some(server.balancer),
            queue_limit: server.queue_limit.map(QueueLimit::Requests),
            cost: server.cost.clone(),
            jitter: Some(server.jitter.clone()),
            overhead: (server.overhead != Overhead::default())
                .then(|| OverheadTable::from(server.overhead)),
        }
    }
}

impl From<Overhead> for OverheadTable {
    fn from(overhead: Overhead) -> Self {
        let Overhead { inbound, dispatch, release, release_per_request, response } = overhead;
        Self { inbound, dispatch, release, release_per_request, response }
    }
}

impl From<&super::Labelled> for PolicyTable {
    fn from(labelled: &super::Labelled) -> Self {
        Self {
            label: labelled.label.clone(),
            guard: labelled.guard,
            policy: labelled.policy.clone(),
        }
    }
}

impl From<&super::Threshold> for ThresholdTable {
    fn from(threshold: &super::Threshold) -> Self {
        Self {
            expr: threshold.expr.clone(),
            class: threshold.class.clone(),
            policy: threshold.policy.clone(),
        }
    }
}

impl From<&super::Axis> for AxisTable {
    fn from(axis: &super::Axis) -> Self {
        Self { path: axis.path.clone(), values: axis.values.clone() }
    }
}

impl From<&super::Tune> for WrittenTune {
    fn from(tune: &super::Tune) -> Self {
        let policies = tune
            .policies
            .as_ref()
            .map(|labels| AxisTable { path: "policy".into(), values: labels.clone() });
        Self {
            objective: tune.objective.to_string(),
            over: policies.into_iter().chain(tune.over.iter().map(AxisTable::from)).collect(),
            indifference: Fraction::new(tune.indifference),
        }
    }
}
