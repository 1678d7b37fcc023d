import { type ErrorCode } from '@platform/contract/errors'
import { now } from '@platform/core/clock'
import { platformError } from '@platform/core/error'
import { newNonce } from '@platform/core/id'
import { log } from '@platform/core/log'
import { type Deployment } from '@platform/core/modules/record'
import { publishedIn } from './lifecycle/published.ts'
import {
  type ModuleResponse,
  type ModuleRequest,
  type RequestLimits,
  RuntimeError,
  type RuntimeErrorKind,
} from '../runtimes/port.ts'
import { notAskedHeader, type PublishedEvent } from '@platform/modules/protocol'
import { recordPublished } from './published.ts'
import { findModule } from './records.ts'
import { moduleClient } from './client.ts'

/** Requests of callers on their way to a module (D48): the gateway has taken out of them what is not the module's business. */

/** Gateways wait for 30 seconds, and Lambda carries 6 MB: so many bytes, once they are Base64. */
const usualLimits = { timeoutMs: 25_000, maxBytes: 4_500_000 }

const codes: Readonly<Record<RuntimeErrorKind, ErrorCode>> = {
  unavailable: 'module_unavailable',
  timeout: 'module_timeout',
  crashed: 'module_failed',
  init_failed: 'module_failed',
  too_large: 'module_failed',
  refused: 'module_failed',
}

/**
 * Asks a module, and tells the platform what it has published on the occasion. Throws `module_unavailable` where the request
 * has not reached it, `module_timeout`, `module_failed`. No store calls, and two where it has published something.
 */
export async function callModule(
  deployment: Deployment,
  request: ModuleRequest,
  limits: RequestLimits = usualLimits,
): Promise<ModuleResponse> {
  const runtime = await moduleClient()
  const answer = await runtime.request(deployment, request, limits).catch((error: unknown) => {
    throw error instanceof RuntimeError ? platformError(codes[error.problem], {}, { cause: error }) : error
  })
  await record(deployment.moduleId, publishedIn(deployment.moduleId, answer.headers))
  // It is being started, or another one takes its place: nothing has been done, and the next try may reach who does it.
  if (answer.headers[notAskedHeader] !== undefined) throw platformError('module_unavailable')
  return answer
}

/** The caller has its answer whatever becomes of the events: what it asked for is done. */
async function record(moduleId: string, published: readonly PublishedEvent[]): Promise<void> {
  if (published.length === 0) return
  try {
    const module = await findModule(moduleId)
    if (module !== undefined) await recordPublished(module, published, { atMs: now(), name: newNonce() })
  } catch (error) {
    log('error', 'What a module has published is lost', { moduleId, events: published.length, cause: error })
  }
}
