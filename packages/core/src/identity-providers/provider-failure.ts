import type { ProviderProblem } from '@platform/contract/identity'
import { type Origin, system } from '../caller.ts'
import { now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { log } from '../log.ts'
import { commit } from '../outbox/commit.ts'
import { parseFailures, type ProviderRecord } from './record.ts'

/** The minimum interval between two reports of the same problem of a provider. */
const reportIntervalMs = 3_600_000

const problemTitles: Record<ProviderProblem, string> = {
  unreachable: 'The provider is unreachable',
  answer_invalid: 'The provider sent an error or an invalid response',
  groups_incomplete: 'The list of groups is incomplete',
}

/**
 * Stores the failure, and reports it with an audit entry and a notification to administrators. Only logs a repetition
 * within an hour. Never throws, because the response to the user must not depend on the report.
 */
export async function reportFailure(
  { id, organisationId, type, displayName, failures }: ProviderRecord,
  problem: ProviderProblem,
  reason: string,
  origin: Origin | undefined,
  cause?: unknown,
): Promise<void> {
  const detail = reason.slice(0, 500)
  log('warn', problemTitles[problem], { providerId: id, detail, ...(cause !== undefined && { cause }) })
  const knownFailures = parseFailures(failures)
  const atMs = now()
  if (Math.abs(atMs - (knownFailures[problem]?.atMs ?? -Infinity)) < reportIntervalMs) return
  const set = { failures: JSON.stringify({ ...knownFailures, [problem]: { detail, atMs } }) }
  try {
    // The condition fails if another request has just reported a failure.
    await commit(system(organisationId, origin?.address), {
      writes: [patch(keys.identityProvider(id), { set }, { failures: unchangedCondition(failures) })],
      audit: { action: 'identity_provider.fail', resource: id, detail: `${problemTitles[problem]}: ${detail}` },
      events: [
        {
          name: 'identity.provider_failed',
          subject: id,
          data: { providerId: id, type, displayName, problem, detail },
        },
      ],
      // A message is not needed: the organisation's next message or the sweep starts the projections.
      isEnqueued: true,
    })
  } catch (error) {
    log('error', 'The failure of a provider could not be stored', { providerId: id, error: String(error) })
  }
}
