import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRuntime } from '../../runtimes/port.ts'
import { type PublishedEvent } from '@platform/modules/protocol'
import { callControl } from './control-client.ts'
import { InstanceDescription } from './description.ts'

/** A module gives five seconds each to requests under way and to the two parts of its disposal. */
const disposeMs = 15_000
/** What is left of a module that was disposed of has no reason to live on. */
const removeMs = 5000

/** What an end left to say. */
export interface ShutdownResult {
  problems: string[]
  published: PublishedEvent[]
}

/**
 * Ends a module: stop, with its own budget; dispose, whatever became of stop; then the deployment goes. What the module does
 * wrong is told and ends nothing sooner; only a runtime that cannot remove it throws: then try again.
 */
export async function shutDown(
  runtime: ModuleRuntime,
  deployment: Deployment,
  { graceMs = 30_000 }: { graceMs?: number } = {},
): Promise<ShutdownResult> {
  const ended: ShutdownResult = { problems: [], published: [] }
  for (const [hook, limitMs] of [
    ['stop', graceMs],
    ['dispose', disposeMs],
  ] as const) {
    const asked = await callControl(runtime, deployment, {
      method: 'POST',
      path: `/${hook}`,
      limitMs,
      answer: InstanceDescription,
    })
    ended.published.push(...asked.published)
    if (!asked.isDone) ended.problems.push(`${hook}: ${asked.message}`)
  }
  await runtime.remove(deployment, Math.min(graceMs, removeMs))
  return ended
}
