import { DeployRequest, type HostFailure, RemoveRequest, TidyRequest } from '@platform/worker/runtimes/host-protocol'
import { type ModuleRuntime, RuntimeError } from '@platform/worker/runtimes/port'
import type * as z from 'zod'
import { type RpcHandler, type RpcServerOptions, type RpcServer, jsonOf, serveRpc } from '../rpc-server.ts'

export interface HostServerOptions extends Pick<RpcServerOptions, 'token' | 'port' | 'onError'> {
  runtime: ModuleRuntime
  /** Id of a deployment → its token, set before the deployment starts and deleted after its removal. */
  tokens: Map<string, string>
}

/** Serves the module runtime to functions on loopback. worker/runtimes/host-protocol.ts describes the calls. */
export async function serveHost({ runtime, tokens, ...options }: HostServerOptions): Promise<RpcServer> {
  const calls: Record<string, RpcHandler> = {
    'POST /deploy': async (request) => {
      const { spec, token } = DeployRequest.parse(jsonOf(request))
      tokens.set(spec.id, token)
      return runtime.deploy(spec)
    },
    'POST /remove': async (request) => {
      const { deployment, graceMs } = RemoveRequest.parse(jsonOf(request))
      await runtime.remove(deployment, graceMs)
      tokens.delete(deployment.id)
      return undefined
    },
    'POST /tidy': async (request) => {
      await runtime.tidy?.(TidyRequest.parse(jsonOf(request)).digests)
      return undefined
    },
    'GET /list': async () => ({ items: await runtime.list() }),
  }
  return serveRpc({ ...options, calls, failureOf })
}

const failureOf = (error: unknown): z.infer<typeof HostFailure> | undefined =>
  error instanceof RuntimeError ? { problem: error.problem, message: error.message } : undefined
