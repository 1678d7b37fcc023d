import { arnOf } from './address.ts'
import type { LambdaFunction, Revision } from './function.ts'
import type { Lambda } from './lambda.ts'
import { conflict, staleRevision } from './refusals.ts'

/** Makes a Pending revision Active, or Failed where its code cannot be prepared. */
export function activateLater({ settling }: Lambda, revision: Revision): void {
  settling.later(async () => {
    const problem = await problemOf(revision)
    revision.state = problem === undefined ? 'Active' : 'Failed'
    revision.stateReason = problem
    revision.lastUpdate = problem === undefined ? 'Successful' : 'Failed'
    revision.revisionId = crypto.randomUUID()
  })
}

/** Replaces `$LATEST`. The previous revision is served until the new one is ready, or permanently if it fails. */
export function replaceLatest({ settling, fleet }: Lambda, found: LambdaFunction, revision: Revision): void {
  found.latest = revision
  revision.lastUpdate = 'InProgress'
  revision.lastUpdateReason = { code: 'Creating', text: 'The update is being prepared.' }
  settling.later(async () => {
    const problem = await problemOf(revision)
    revision.lastUpdate = problem === undefined ? 'Successful' : 'Failed'
    revision.lastUpdateReason = problem
    revision.revisionId = crypto.randomUUID()
    if (problem !== undefined) return
    const before = found.served
    found.served = revision
    revision.state = 'Active'
    revision.stateReason = undefined
    await fleet.retire(before)
  })
}

async function problemOf({ code }: Revision): Promise<Revision['stateReason']> {
  try {
    await code.prepare()
    return undefined
  } catch (error) {
    return { code: 'InvalidImage', text: error instanceof Error ? error.message : String(error) }
  }
}

export function requireSettled({ latest }: LambdaFunction): void {
  const arn = arnOf(latest.functionName)
  if (latest.state === 'Pending') throw conflict(`${arn} is in the state Pending. Retry later.`)
  if (latest.lastUpdate === 'InProgress') throw conflict(`An update of ${arn} is in progress. Retry later.`)
}

export function requireRevision({ revisionId }: { revisionId: string }, expected: string | undefined): void {
  if (expected !== undefined && expected !== revisionId) throw staleRevision()
}
