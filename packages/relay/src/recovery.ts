import { notStarted } from './execution.ts'
import type { UnfinishedEntry } from './journal-entry.ts'
import { info, warn } from './log.ts'
import { Output } from './output.ts'
import { type Leader, signalGroup, stampOf } from './process-group.ts'
import { claimJob, reportCompletion } from './report.ts'
import type { JobDeps } from './job-deps.ts'
import { Upload } from './upload.ts'

/** Completes a job that an earlier run of the relay left unfinished. Its script does not run again. */
export async function recover(entry: UnfinishedEntry, deps: JobDeps): Promise<void> {
  const { jobId } = entry
  if (entry.state === 'claiming') {
    const claim = await claimJob(deps, jobId, entry.claimKey)
    if (!claim) return deps.journal.append({ state: 'dropped', jobId })
    info(`Job ${jobId} was claimed when the relay stopped; it is reported as interrupted.`)
    return reportCompletion(deps, { jobId, leaseId: claim.leaseId }, notStarted('interrupted'))
  }
  if (entry.state === 'started') {
    for (const leader of entry.leaders) endGroup(leader, jobId)
    info(`Job ${jobId} was running when the relay stopped; it is reported as interrupted.`)
    return reportCompletion(deps, entry, notStarted('interrupted'))
  }
  const output = new Output(deps.spool.load(jobId))
  const keepsLast = () => deps.server.acceptsLastOutput
  const upload = new Upload({ lease: entry, output, client: deps.client, keepsLast, onCancel: () => {} })
  upload.start(deps.signal)
  return reportCompletion(deps, entry, entry.ending, upload)
}

// If the stamp differs, the id may belong to another process, so its group is not killed.
function endGroup(leader: Leader, jobId: string): void {
  if (stampOf(leader.pid) === leader.stamp) signalGroup(leader.pid, 'SIGKILL')
  else if (signalGroup(leader.pid, 0))
    warn(`Job ${jobId} may still run in process group ${leader.pid}. End it by hand.`)
}
