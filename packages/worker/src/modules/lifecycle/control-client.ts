import type { Deployment } from '@platform/core/modules/deployment'
import * as z from 'zod'
import type { ModuleResponse, ModuleRequest, ModuleClient } from '../../runtimes/port.ts'
import { controlPath, timeoutHeader, type PublishedEvent } from '@platform/modules/protocol'
import { publishedIn } from './published.ts'

/** The response of an instance, or the reason why it is unusable. Module errors become results, never exceptions. */
export type ControlResponse<Body> = { published: PublishedEvent[] } & (
  | { isDone: true; body: Body }
  /** `status` is the status of the response, if there is one. */
  | { isDone: false; message: string; status?: number }
)

export interface ControlRequest<Body> {
  method: 'GET' | 'POST'
  path: string
  body?: object
  /** Time limit that is sent to the instance; the platform waits slightly longer. */
  limitMs: number
  schema: z.ZodType<Body>
}

/** Additional time to wait after the instance's own time limit. */
const marginMs = 1000
const maxResponseBytes = 262_144

const Failure = z.object({ message: z.string() })

export async function callControl<Body>(
  runtime: ModuleClient,
  deployment: Deployment,
  { method, path, body, limitMs, schema }: ControlRequest<Body>,
): Promise<ControlResponse<Body>> {
  const response = await responseTo(runtime, deployment, limitMs + marginMs, {
    method,
    path: `${controlPath}${path}`,
    headers: { [timeoutHeader]: String(limitMs), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: Buffer.from(JSON.stringify(body)) }),
  })
  if (typeof response === 'string') return { isDone: false, message: response, published: [] }
  const published = publishedIn(deployment.moduleId, response.headers)
  const { status } = response
  const content = jsonOf(response)
  if (status !== 200) return { isDone: false, status, message: reasonOf(content, status, method, path), published }
  const { success, data } = schema.safeParse(content)
  if (success) return { isDone: true, body: data, published }
  return { isDone: false, status, message: `It returned an invalid response to ${method} ${path}.`, published }
}

/** Sends a request. Returns the response, or the error message. */
export async function responseTo(
  runtime: ModuleClient,
  deployment: Deployment,
  timeoutMs: number,
  request: ModuleRequest,
): Promise<ModuleResponse | string> {
  try {
    return await runtime.request(deployment, request, { timeoutMs, maxBytes: maxResponseBytes })
  } catch (error) {
    return sanitize(error instanceof Error ? error.message : String(error))
  }
}

/** Maximum nesting: no SDK nests deeper, and recursion over much deeper content could exhaust the stack. */
const maxDepth = 32

/** Parses the body. Returns undefined if it is not JSON or nested too deeply. */
export function jsonOf({ body }: ModuleResponse): unknown {
  try {
    const content: unknown = JSON.parse(Buffer.from(body).toString())
    return isDeeper(content, maxDepth) ? undefined : content
  } catch {
    return undefined
  }
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1)))

function reasonOf(content: unknown, status: number, method: string, path: string): string {
  const { success, data } = Failure.safeParse(content)
  return success && data.message !== '' ? sanitize(data.message) : `It returned ${status} to ${method} ${path}.`
}

/** Makes a module's text safe to store and to show. */
export const sanitize = (text: string, maxLength = 1000): string =>
  text
    .toWellFormed()
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ')
    .slice(0, maxLength)
    // `slice` may have split a surrogate pair.
    .toWellFormed()
