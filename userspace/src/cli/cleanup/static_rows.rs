//! Takes static bindings of node IPs away.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::Context as _;

use super::{CleanupArgs, Report};
use crate::{
    agent::{
        chain,
        state::StateFile,
        static_rows::{orphans::orphaned_ports, transactions::operation},
    },
    cli::live,
    statics::{Masquerade, Mode, Target, recompute, targets},
};

/// Rows deleted in one transaction.
const CHUNK: usize = 5_000;

/// Deletes ours. Where the northbound database cannot be read that is an error only if this node's
/// state says that there are some.
pub(super) async fn clean(args: &CleanupArgs, report: &mut Report) {
    let state = StateFile::open(&args.state.state_dir).ok();
    let recorded = state.as_ref().map(StateFile::static_ports);
    match delete(args, recorded.clone().unwrap_or_default()).await {
        Ok((deleted, kept)) => {
            report.static_bindings_deleted = deleted;
            report.static_bindings_kept = kept;
            // Those that are kept are an agent's again that is started later.
            let forgotten = state
                .filter(|_| kept == 0)
                .map(|state| state.set_static_ports([].into()));
            if let Some(Err(error)) = forgotten {
                report.errors.push(chain(&error));
            }
        }
        Err(error) if recorded.is_some_and(|ports| ports.is_empty()) => {
            report.static_bindings_unknown = Some(chain(error.as_ref()));
        }
        Err(error) => report.errors.push(chain(error.as_ref())),
    }
}

/// How many were deleted, and how many kept.
async fn delete(
    args: &CleanupArgs,
    recorded: BTreeSet<Arc<str>>,
) -> anyhow::Result<(usize, usize)> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let model = live::northbound_model(&connection).await?;
    let mut known = orphaned_ports(&connection).await?;
    known.extend(recorded);
    let mut targets = targets(model.rows(), model.topology(), &known);
    let rows = live::static_rows(&connection, &targets).await?;
    let masquerade = Masquerade::new(args.masquerade_subnet.iter().copied());
    let deletions =
        |targets: &[Target]| recompute(&rows, targets, None, Mode::Withdraw, &masquerade);
    let all = deletions(&targets).len();
    if args.keep_rows {
        targets.iter_mut().for_each(Target::leave_alone);
    }
    let deletions = deletions(&targets);
    let kept = all - deletions.len();
    if deletions.is_empty() {
        return Ok((0, kept));
    }
    let database = live::Writer::to_northbound(&connection).await?;
    for chunk in deletions.chunks(CHUNK) {
        let operations: Vec<_> = chunk.iter().map(operation).collect();
        let deleted = database.transact(&operations).await;
        deleted.context("static bindings of node IPs could not be deleted")?;
    }
    Ok((deletions.len(), kept))
}
