import type { FunctionName } from '@platform/contract/index'
import type { Role } from '@platform/contract/permission'
import type { Caller } from '@platform/core/caller'
import { issueAccessToken } from '@platform/core/signing/access-token'
import type { GatewayHandler } from '@platform/http/event'
import { send } from './event.ts'

/** Who asks: somebody who is signed in, in a role that `caller` has; or nobody. */
export type Asker = readonly [caller: Caller, role: Role] | undefined

/**
 * What becomes of a request to a function, such as `POST /api/v1/sites`, that must not succeed: the code of its refusal, for tests of the
 * code behind the function that want it said to callers too. Otherwise the status.
 */
export async function refusalBy(name: FunctionName, request: string, by: Asker, body?: object): Promise<string> {
  const { handler } = (await import(`../../functions/${name}.ts`)) as { handler: GatewayHandler }
  const [method = '', target = ''] = request.split(' ')
  const token = by && (await issueAccessToken({ ...by[0], roles: [by[1]] }))
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { 'content-type': 'application/json' }),
  }
  const answer = await send(handler, { method, target, headers, ...(body && { body: JSON.stringify(body) }) })
  return answer.json?.error ?? String(answer.status)
}
