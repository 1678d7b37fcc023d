import { type Deployment } from '@platform/core/modules/record'
import * as z from 'zod'
import { type ModuleResponse, type ModuleRequest, type ModuleClient } from '../../runtimes/port.ts'
import { controlPath, graceHeader, type PublishedEvent } from '@platform/modules/protocol'
import { publishedIn } from './published.ts'

/** What an instance answered, or why there is nothing to use. Whatever a module does becomes this, never an exception. */
export type ControlResponse<Body> = { published: PublishedEvent[] } & (
  | { isDone: true; body: Body }
  /** `status` is that of an answer that came and says no. */
  | { isDone: false; message: string; status?: number }
)

/** A control call. */
export interface ControlRequest<Body> {
  method: 'GET' | 'POST'
  /** Below the control path. */
  path: string
  body?: object
  /** What the instance may take; it is told so, and waited for a little longer. */
  limitMs: number
  answer: z.ZodType<Body>
}

/** So much later than the instance itself is to give up, it is given up. */
const marginMs = 1000
/** The largest answer of an instance about itself. */
const maxAnswerBytes = 262_144

const Failure = z.object({ message: z.string() })

/** Asks an instance about itself, or to do something. */
export async function callControl<Body>(
  runtime: ModuleClient,
  deployment: Deployment,
  { method, path, body, limitMs, answer: schema }: ControlRequest<Body>,
): Promise<ControlResponse<Body>> {
  const answer = await responseTo(runtime, deployment, limitMs + marginMs, {
    method,
    path: `${controlPath}${path}`,
    headers: { [graceHeader]: String(limitMs), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: Buffer.from(JSON.stringify(body)) }),
  })
  if (typeof answer === 'string') return { isDone: false, message: answer, published: [] }
  const published = publishedIn(deployment.moduleId, answer.headers)
  const { status } = answer
  const content = jsonOf(answer)
  if (status !== 200) return { isDone: false, status, message: reasonOf(content, status, method, path), published }
  const { success, data } = schema.safeParse(content)
  if (success) return { isDone: true, body: data, published }
  return { isDone: false, status, message: `It answers ${method} ${path} with what no SDK answers.`, published }
}

/** Asks an instance anything: its answer, or in words why there is none. */
export async function responseTo(
  runtime: ModuleClient,
  deployment: Deployment,
  timeoutMs: number,
  request: ModuleRequest,
): Promise<ModuleResponse | string> {
  try {
    return await runtime.request(deployment, request, { timeoutMs, maxBytes: maxAnswerBytes })
  } catch (error) {
    return plain(error instanceof Error ? error.message : String(error))
  }
}

/** No SDK nests deeper; what does ends whoever walks through it. */
const deepest = 32

/** The content of an answer; undefined where it is not JSON, or nested without measure. */
export function jsonOf({ body }: ModuleResponse): unknown {
  try {
    const content: unknown = JSON.parse(Buffer.from(body).toString())
    return isDeeper(content, deepest) ? undefined : content
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
  return success && data.message !== '' ? plain(data.message) : `It answers ${status} to ${method} ${path}.`
}

/** A text of a module that may be stored and shown. */
export const plain = (text: string, maxLength = 1000): string =>
  text
    .toWellFormed()
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ')
    .slice(0, maxLength)
    // The cut may have gone through a character.
    .toWellFormed()
