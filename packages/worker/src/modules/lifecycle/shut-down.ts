import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRuntime } from '../../runtimes/port.ts'
import { type PublishedEvent } from '@platform/modules/protocol'
import { callControl } from './control-client.ts'
import { InstanceDescription } from './description.ts'

/** A module allows five seconds each for requests in progress and for the two parts of its disposal. */
const disposeMs = 15_000
/** A disposed module has no reason to keep running. */
const removeMs = 5000

export interface ShutdownResult {
  problems: string[]
  published: PublishedEvent[]
}

/**
 * Shuts down a module: stop with its own time limit, dispose regardless of the result, then removal of the deployment.
 * Module errors are reported and do not abort it. Throws only if the runtime cannot remove the deployment: retry then.
 */
export async function shutDown(
  runtime: ModuleRuntime,
  deployment: Deployment,
  { graceMs = 30_000 }: { graceMs?: number } = {},
): Promise<ShutdownResult> {
  const result: ShutdownResult = { problems: [], published: [] }
  for (const [hook, limitMs] of [
    ['stop', graceMs],
    ['dispose', disposeMs],
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
  await runtime.remove(deployment, Math.min(graceMs, removeMs))
  return result
}
