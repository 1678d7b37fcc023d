import type { ErrorCode } from '@platform/contract/errors'
import { now } from '@platform/core/clock'
import { platformError } from '@platform/core/error'
import { newNonce } from '@platform/core/id'
import { log } from '@platform/core/log'
import type { Deployment } from '@platform/core/modules/deployment'
import { publishedIn, recordPublished } from './lifecycle/published.ts'
import {
  type ModuleResponse,
  type ModuleRequest,
  type RequestLimits,
  RuntimeError,
  type RuntimeErrorKind,
} from '../runtimes/port.ts'
import { notAskedHeader, type PublishedEvent } from '@platform/modules/protocol'
import { findModule } from './records.ts'
import { moduleClient } from './client.ts'

/** API Gateway times out after 30 seconds. Lambda limits a payload to 6 MB, which is 4.5 MB before Base64. */
const defaultLimits = { timeoutMs: 25_000, maxBytes: 4_500_000 }

const errorCodeByKind: Readonly<Record<RuntimeErrorKind, ErrorCode>> = {
  unavailable: 'module_unavailable',
  timeout: 'module_timeout',
  crashed: 'module_failed',
  init_failed: 'module_failed',
  too_large: 'module_failed',
  refused: 'module_failed',
}

/**
 * Calls a module and records the events that it publishes in its response. Throws `module_unavailable` if no instance
 * accepted the request, otherwise `module_timeout` or `module_failed`.
 */
export async function callModule(
  deployment: Deployment,
  request: ModuleRequest,
  limits: RequestLimits = defaultLimits,
): Promise<ModuleResponse> {
  const runtime = await moduleClient()
  const response = await runtime.request(deployment, request, limits).catch((error: unknown) => {
    throw error instanceof RuntimeError ? platformError(errorCodeByKind[error.problem], {}, { cause: error }) : error
  })
  await record(deployment.moduleId, publishedIn(deployment.moduleId, response.headers))
  // The instance is starting or being replaced and has not processed the request; a retry may reach the right instance.
  if (response.headers[notAskedHeader] !== undefined) throw platformError('module_unavailable')
  return response
}

/** Records published events. Only logs a failure, because the request is complete. */
async function record(moduleId: string, publishedEvents: readonly PublishedEvent[]): Promise<void> {
  if (publishedEvents.length === 0) return
  try {
    const module = await findModule(moduleId)
    if (module !== undefined) await recordPublished(module, publishedEvents, { atMs: now(), name: newNonce() })
  } catch (error) {
    log('error', 'Failed to record module events', { moduleId, events: publishedEvents.length, cause: error })
  }
}
