import type { Deployment } from '@platform/core/modules/deployment'
import type { ModuleRuntime } from '../../runtimes/port.ts'
import type { PublishedEvent } from '@platform/modules/protocol'
import { callControl } from './control-client.ts'
import { InstanceDescription } from './description.ts'

/** A module allows five seconds each for requests in progress and for the two parts of its disposal. */
const disposeLimitMs = 15_000
/** This limit is short, because a disposed module has no work left. */
const maxRemoveGraceMs = 5000

export interface ShutdownResult {
  problems: string[]
  published: PublishedEvent[]
}

/**
 * Calls the hook `stop`, then `dispose` even if `stop` fails, and removes the deployment. Errors of the module are
 * returned in `problems`. Throws only if the runtime cannot remove the deployment; the caller must then try again.
 */
export async function shutDown(
  runtime: ModuleRuntime,
  deployment: Deployment,
  { graceMs = 30_000 }: { graceMs?: number } = {},
): Promise<ShutdownResult> {
  const result: ShutdownResult = { problems: [], published: [] }
  for (const [hook, limitMs] of [
    ['stop', graceMs],
    ['dispose', disposeLimitMs],
  ] as const) {
    const response = await callControl(runtime, deployment, {
      method: 'POST',
      path: `/${hook}`,
      limitMs,
      schema: InstanceDescription,
    })
    result.published.push(...response.published)
    if (!response.isDone) result.problems.push(`${hook}: ${response.message}`)
  }
  await runtime.remove(deployment, Math.min(graceMs, maxRemoveGraceMs))
  return result
}
