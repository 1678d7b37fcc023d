import { config } from '@platform/core/config'
import { releaseIdentity } from '@platform/core/updates/record'
import { HostFailure, Installed, InvokeAnswer, StageAnswer, UnansweredAnswer } from './host-protocol.ts'
import { TargetError, type UpdateTarget } from './port.ts'

/** The address of the platform process that replaces its functions; from the settings by default. */
export interface LocalSupervisorOptions {
  url?: string
  token?: string
}

const invokeLimitMs = 30_000
/** A call may wait for the previous one, and each takes up to a minute if the functions of a release do not start. */
const callLimitMs = 130_000

type Body = object | Uint8Array<ArrayBuffer>

/** The one-machine platform, as seen by its functions: it keeps its port and replaces the functions' threads. */
export function localSupervisor({
  url = config.PLAT_UPDATE_SUPERVISOR_URL,
  token = config.PLAT_UPDATE_SUPERVISOR_TOKEN,
}: LocalSupervisorOptions = {}): UpdateTarget {
  const call = async (method: string, path: string, body?: Body, timeoutMs = callLimitMs): Promise<unknown> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(timeoutMs),
      ...(body && { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    }).catch(rethrow)
    return contentOf(response.status, await response.text().catch(rethrow))
  }

  return {
    current: async () => Installed.parse(await call('GET', '/current')),
    async stage({ functionNames, fetchFunction, ...staged }) {
      const release = releaseIdentity(staged)
      const body = { release, functionNames }
      const { missing } = StageAnswer.parse(await call('POST', '/stage', body))
      for (const name of missing) {
        const query = new URLSearchParams({ version: release.version, digest: release.digest ?? '', name })
        // oxlint-disable-next-line no-await-in-loop -- one zip in memory at a time
        await call('PUT', `/function?${query.toString()}`, new Uint8Array(await fetchFunction(name)))
      }
      await call('POST', '/ready', body)
    },
    async invoke(release, functionName, event) {
      const body = { release: releaseIdentity(release), functionName, event }
      return InvokeAnswer.parse(await call('POST', '/invoke', body, invokeLimitMs)).result
    },
    async unanswered(release, sinceMs) {
      const body = { release: releaseIdentity(release), sinceMs }
      return UnansweredAnswer.optional().parse(await call('POST', '/unanswered', body))
    },
    shift: async (release, share) => void (await call('POST', '/shift', { release: releaseIdentity(release), share })),
    commit: async (release, before) =>
      void (await call('POST', '/commit', { release: releaseIdentity(release), before: releaseIdentity(before) })),
    revert: async (release, before) =>
      void (await call('POST', '/revert', { release: releaseIdentity(release), before: releaseIdentity(before) })),
  }
}

function rethrow(cause: unknown): never {
  const isTimeout = cause instanceof Error && cause.name === 'TimeoutError'
  throw new TargetError(
    isTimeout ? 'The platform did not respond in time.' : 'The platform does not respond to its functions.',
    {
      cause,
    },
  )
}

function contentOf(status: number, text: string): unknown {
  if (status === 200) return JSON.parse(text)
  if (status === 204) return undefined
  if (status !== 422) throw new TargetError(`The platform responded to its functions with ${status}.`)
  const { message, isFinal } = HostFailure.parse(JSON.parse(text))
  throw new TargetError(message, { isFinal })
}
