import { randomBytes } from 'node:crypto'
import {
  FunctionQuery,
  type HostFailure,
  InvokeRequest,
  maxZipBytes,
  ShiftRequest,
  StageRequest,
  SwapRequest,
  UnansweredRequest,
} from '@platform/worker/updates/target/host-protocol'
import { TargetError } from '@platform/worker/updates/target/port'
import type * as z from 'zod'
import { type RpcHandler, jsonOf, serveRpc } from '../rpc-server.ts'
import type { Log } from '../log.ts'
import type { UpdateControl } from './control.ts'

export interface ControlServer {
  /** The values of `PLAT_UPDATE_SUPERVISOR_URL` and `PLAT_UPDATE_SUPERVISOR_TOKEN`. */
  url: string
  token: string
  close: () => Promise<void>
}

/** Listens on loopback. Calls wait for `control`. worker/updates/target/host-protocol.ts describes the calls. */
export async function serveControl(control: Promise<UpdateControl>, log: Log): Promise<ControlServer> {
  const token = randomBytes(32).toString('base64url')
  const calls: Record<string, RpcHandler> = {
    'GET /current': async () => (await control).current(),
    'POST /stage': async (request) => {
      const { release, functionNames } = StageRequest.parse(jsonOf(request))
      return { missing: await (await control).missing(release, functionNames) }
    },
    'PUT /function': async ({ body, query }) => {
      const { name, ...release } = FunctionQuery.parse(Object.fromEntries(query))
      await (await control).add(release, name, body)
      return undefined
    },
    'POST /ready': async (request) => {
      const { release, functionNames } = StageRequest.parse(jsonOf(request))
      await (await control).ready(release, functionNames)
      return undefined
    },
    'POST /invoke': async (request) => {
      const { release, functionName, event } = InvokeRequest.parse(jsonOf(request))
      return { result: await (await control).invoke(release, functionName, event) }
    },
    'POST /unanswered': async (request) => {
      const { release, sinceMs } = UnansweredRequest.parse(jsonOf(request))
      return (await control).unanswered(release, sinceMs)
    },
    'POST /shift': async (request) => {
      const { release, share } = ShiftRequest.parse(jsonOf(request))
      await (await control).shift(release, share)
      return undefined
    },
    'POST /commit': async (request) => {
      const { release, before } = SwapRequest.parse(jsonOf(request))
      await (await control).commit(release, before)
      return undefined
    },
    'POST /revert': async (request) => {
      const { release, before } = SwapRequest.parse(jsonOf(request))
      await (await control).revert(release, before)
      return undefined
    },
  }
  const onError = (error: unknown) => log('an update of the functions failed', { error })
  const server = await serveRpc({ token, port: 0, calls, failureOf, onError, maxBytes: maxZipBytes })
  return { ...server, token }
}

const failureOf = (error: unknown): z.infer<typeof HostFailure> | undefined =>
  error instanceof TargetError ? { message: error.message, isFinal: error.isFinal } : undefined
