import { config } from '@platform/core/config'
import { Deployment } from '@platform/core/modules/deployment'
import type * as z from 'zod'
import { callInstance, sendRequest } from './instance-request.ts'
import { type DeployRequest, HostFailure, type RemoveRequest, StatusList } from './host-protocol.ts'
import { type ModuleResponse, type ModuleRequest, type ModuleRuntime, RuntimeError } from './port.ts'
import { tokenOf as deriveToken } from './token.ts'

/** Address and token of the module host; from the settings by default. */
export interface HostedOptions {
  url?: string
  token?: string
  tokenOf?: (deploymentId: string) => Promise<string>
}

/** A deployment first fetches its image. The deployment continues after this timeout, and a retry finds it. */
const deployLimitMs = 120_000
const listLimitMs = 10_000
const marginMs = 10_000
const maxBytes = 8 * 1024 * 1024

/** The one-machine runtime, as used by functions: the host owns the processes, and requests bypass the host. */
export function hostedRuntime(options: HostedOptions = {}): ModuleRuntime {
  const { url = config.PLAT_MODULE_HOST_URL, token = config.PLAT_MODULE_HOST_TOKEN, tokenOf = deriveToken } = options
  const { hostname, port } = new URL(url)
  const address = { host: hostname, port: Number(port) }

  const call = async (method: string, path: string, timeoutMs: number, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const request: ModuleRequest = { method, path, headers, ...(body && { body: Buffer.from(JSON.stringify(body)) }) }
    return contentOf(await sendRequest(address, request, { timeoutMs, maxBytes }).catch(throwUnavailable))
  }

  return {
    async deploy(spec) {
      const body: z.infer<typeof DeployRequest> = { spec, token: await tokenOf(spec.id) }
      return Deployment.parse(await call('POST', '/deploy', deployLimitMs, body))
    },
    request: async ({ id, handle }, request, limits) => callInstance(handle, await tokenOf(id), request, limits),
    async remove(deployment, graceMs) {
      const body: z.infer<typeof RemoveRequest> = { deployment, graceMs }
      await call('POST', '/remove', graceMs + marginMs, body)
    },
    tidy: async (digests) => void (await call('POST', '/tidy', listLimitMs, { digests })),
    list: async () => StatusList.parse(await call('GET', '/list', listLimitMs)).items,
  }
}

/** Throws `unavailable`, because a failed connection to the module host is not an error of the module. */
function throwUnavailable(cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : String(cause)
  throw new RuntimeError('unavailable', `The module host does not respond: ${reason}`, { cause })
}

function contentOf({ status, body }: ModuleResponse): unknown {
  if (status === 204) return undefined
  const content: unknown = body.length > 0 ? JSON.parse(Buffer.from(body).toString()) : undefined
  if (status === 200) return content
  const parsed = HostFailure.safeParse(content)
  if (parsed.success) throw new RuntimeError(parsed.data.problem, parsed.data.message)
  throw new RuntimeError('unavailable', `The module host responded ${status}.`)
}
