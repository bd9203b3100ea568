//! Steps 1 to 8: the protocol, who the rows belong to, the methods' configurations, and the index of score files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bundle::Finding;
use crate::bundle::cells::{Column, Memo, RawAggregate, RawRows};
use crate::canonical::{Object, Value, digest};
use crate::frozen::Protocol;
use crate::method::{excluded_datasets, exclusion_reason};
use crate::public_metadata::check_public;

/// Step 1, without a protocol from outside.
pub(super) fn embedded_protocol(metadata: &Value) -> Result<Protocol, Finding> {
    let at = "metadata.benchmark_protocol";
    let value = metadata.get("benchmark_protocol");
    let value = value.filter(|value| value.truthy()).ok_or_else(|| {
        Finding::new(
            "protocol",
            at,
            "is missing, and no protocol was given; validate against the protocol file",
        )
    })?;
    Protocol::from_value(value, None)
        .map_err(|error| Finding::new("protocol", at, error.to_string()))
}

/// Step 2.
pub(super) fn check_protocol_id(metadata: &Value, protocol: &Protocol) -> Result<(), Finding> {
    let found = metadata.get("protocol_id").and_then(Value::as_str);
    if found == Some(protocol.id()) {
        return Ok(());
    }
    let problem = format!(
        "is {}, but the protocol is {}",
        found.unwrap_or("missing"),
        protocol.id()
    );
    Err(Finding::new("protocol_id", "metadata.protocol_id", problem))
}

/// Step 4: every row of both tables repeats the benchmark and the protocol.
pub(super) fn check_identity(
    rows: &RawRows,
    aggregate: &RawAggregate<'_>,
    protocol: &Protocol,
) -> Result<(), Finding> {
    let check = |table: &str, at: usize, benchmark: Option<&str>, id: Option<&str>| {
        let (column, expected) = if benchmark != Some(protocol.benchmark_id()) {
            ("benchmark_id", protocol.benchmark_id())
        } else if id != Some(protocol.id()) {
            ("protocol_id", protocol.id())
        } else {
            return Ok(());
        };
        let problem = format!("must be {expected:?} on every row");
        Err(Finding::new(
            "identity",
            format!("{table}[{at}].{column}"),
            problem,
        ))
    };
    for (at, row) in rows.rows.iter().enumerate() {
        let text = |column| rows.text(row.get(column)).map(AsRef::as_ref);
        check(
            "per_dataset",
            at,
            text(Column::BenchmarkId),
            text(Column::ProtocolId),
        )?;
    }
    if let Some(at) = aggregate.broken {
        let at = format!("aggregate[{at}]");
        return Err(Finding::new("identity", at, "every row must be an object"));
    }
    if aggregate.rows.is_empty() {
        return Err(Finding::new("identity", "aggregate", "is missing or empty"));
    }
    for (at, row) in aggregate.rows.iter().enumerate() {
        let text = |column| row.get(column).and_then(Value::as_str);
        check("aggregate", at, text("benchmark_id"), text("protocol_id"))?;
    }
    Ok(())
}

/// The methods of a payload.
#[derive(Debug)]
pub(super) struct Methods<'a> {
    by_id: HashMap<&'a str, usize>,
    /// Id and configuration, in order of id.
    pub list: Vec<(Arc<str>, &'a Value)>,
}

fn configuration_at(id: &str) -> String {
    format!("metadata.method_configurations.{id}")
}

impl<'a> Methods<'a> {
    /// Step 6: exactly the methods that have rows have a configuration.
    pub(super) fn read(metadata: &'a Value, rows: &RawRows) -> Result<Self, Finding> {
        let at = "metadata.method_configurations";
        let configurations = metadata
            .get("method_configurations")
            .and_then(Value::as_object);
        let mut methods = Self {
            by_id: HashMap::new(),
            list: Vec::new(),
        };
        for (id, configuration) in configurations.into_iter().flat_map(Object::iter) {
            methods.by_id.insert(id, methods.list.len());
            methods.list.push((id.into(), configuration));
        }
        let mut used = vec![false; methods.list.len()];
        let mut ids = Memo::new(rows);
        for (row, cells) in rows.rows.iter().enumerate() {
            let cell = cells.get(Column::AlgorithmId);
            let found = ids.ask(cell, || methods.find(rows.text(cell)?));
            let Some(found) = found else {
                let problem = format!("no configuration of this method is in {at}");
                let at = format!("per_dataset[{row}].algorithm_id");
                return Err(Finding::new("methods", at, problem));
            };
            used[found] = true;
        }
        match used.iter().position(|used| !used) {
            None => Ok(methods),
            Some(unused) => Err(Finding::new(
                "methods",
                configuration_at(&methods.list[unused].0),
                "no row belongs to this method",
            )),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Step 7.
    pub(super) fn check_configurations(&self, protocol: &Protocol) -> Result<(), Finding> {
        let refuse = |id: &str, field: &str, problem: String| {
            let mut at = configuration_at(id);
            if !field.is_empty() {
                at = format!("{at}.{field}");
            }
            Err(Finding::new("configuration", at, problem))
        };
        for (id, configuration) in &self.list {
            if configuration.as_object().is_none() {
                return refuse(
                    id,
                    "",
                    format!("is {}, not an object", configuration.type_name()),
                );
            }
            if let Err(error) = check_public(configuration) {
                return refuse(id, &error.field, error.problem);
            }
        }
        for (id, configuration) in &self.list {
            if configuration.get("retrieval_options").is_some() {
                let problem = "two-stage retrieval is another experiment; a frozen protocol scores every candidate";
                return refuse(id, "retrieval_options", problem.to_owned());
            }
        }
        for (id, configuration) in &self.list {
            let excluded = match excluded_datasets(configuration) {
                Ok(excluded) => excluded,
                Err(error) => return refuse(id, &error.field, error.problem),
            };
            let known = |name: &String| protocol.datasets().iter().any(|entry| entry.name == *name);
            if let Some(unknown) = excluded.iter().find(|name| !known(name)) {
                let problem = format!("{unknown:?} is no dataset of the protocol");
                return refuse(id, "dataset_exclusions", problem);
            }
        }
        for (id, configuration) in &self.list {
            let computed = digest(configuration);
            if computed != id.as_ref() {
                let problem =
                    format!("its digest is {computed}, so it is not the configuration of this id");
                return refuse(id, "", problem);
            }
        }
        Ok(())
    }

    /// Why each method is excluded from each dataset, method by method.
    pub(super) fn exclusions(&self, protocol: &Protocol) -> Result<Vec<Option<Arc<str>>>, Finding> {
        let mut reasons = Vec::with_capacity(self.list.len() * protocol.datasets().len());
        for (id, configuration) in &self.list {
            for entry in protocol.datasets() {
                let reason = exclusion_reason(configuration, &entry.name, entry.family);
                let reason = reason.map_err(|error| {
                    let at = format!("{}.{}", configuration_at(id), error.field);
                    Finding::new("configuration", at, error.problem)
                })?;
                reasons.push(reason.map(Into::into));
            }
        }
        Ok(reasons)
    }
}
