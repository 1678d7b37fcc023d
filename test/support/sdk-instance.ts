import { defineModule, type ModuleDefinition } from '@platform/modules'
import { requestHandlerOf } from '@platform/modules/request-handler'
import { ModuleHost } from '@platform/modules/host'
import { controlPath, type PublishedEvent, publishedHeader, tokenHeader } from '@platform/modules/protocol'
import { beforeEach, vi } from 'vitest'

beforeEach(() => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
})

const token = 'token-of-the-deployment'

interface RequestOptions {
  headers?: Record<string, string>
  body?: string
  signal?: AbortSignal
}

export interface Instance {
  host: ModuleHost
  send: (method: string, path: string, options?: RequestOptions) => Promise<Response>
  control: (method: string, path: string, body?: object) => Promise<{ status: number; body: any }>
}

export function instanceOf(parts: Partial<ModuleDefinition>, { startsItself = false } = {}): Instance {
  const definition = defineModule({ id: 'sample', version: '1.2.3', ...parts })
  const host = new ModuleHost(definition, { organisationId: 'org_sample', startsItself, isPersistent: true })
  const respond = requestHandlerOf(host, token)
  const send: Instance['send'] = (method, path, { headers = {}, body, signal } = {}) => {
    const allHeaders = {
      [tokenHeader]: token,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const init = { headers: allHeaders, ...(body !== undefined && { body }), ...(signal && { signal }) }
    return respond(new Request(`http://module${path}`, { method, ...init }))
  }
  const control: Instance['control'] = async (method, path, body) => {
    const options = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await send(method, controlPath + path, options)
    return { status: response.status, body: await response.json() }
  }
  return { host, send, control }
}

export async function startedInstance(parts: Partial<ModuleDefinition>): Promise<Instance> {
  const instance = instanceOf(parts)
  await instance.host.configure()
  await instance.host.start()
  return instance
}

export function publishedIn({ headers }: Response): PublishedEvent[] {
  const value = headers.get(publishedHeader)
  return value === null ? [] : JSON.parse(Buffer.from(value, 'base64url').toString())
}
