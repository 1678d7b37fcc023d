import { startModuleRegistry } from '../../support/module-registry.ts'
import { type ServerReply, type ReceivedRequest, startServer } from '../../support/http-server.ts'

type Page = (request: ReceivedRequest) => ServerReply | undefined

/** A registry and a server of manifests. Does not import core, which reads the settings when it is imported. */
export async function startModuleFixtures(settings: Record<string, string> = {}) {
  const registry = await startModuleRegistry()
  const pages = new Map<string, Page>()
  const server = await startServer((request) => (pages.get(request.url.pathname) ?? (() => ({ status: 404 })))(request))
  Object.assign(process.env, registry.settings, { PLAT_OUTBOUND_ALLOW: server.host }, settings)

  /** Serves a response at a new URL. */
  function page(response: Page | string): string {
    const path = `/page-${pages.size}/module.json`
    pages.set(path, typeof response === 'string' ? () => ({ status: 200, body: response }) : response)
    return `${server.url}${path}`
  }

  async function close(): Promise<void> {
    await server[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  }

  return { ...registry, page, close }
}
