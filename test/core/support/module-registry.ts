import { startModuleRegistry } from '../../support/module-registry.ts'
import { type ServerReply, type ReceivedRequest, startServer } from '../../support/http-server.ts'

/** A registry, and a place for manifests outside of images. Loads nothing of core: the settings come first. */
export async function startModuleFixtures(settings: Record<string, string> = {}) {
  const registry = await startModuleRegistry()
  const pages = new Map<string, (seen: ReceivedRequest) => ServerReply | undefined>()
  const server = await startServer((seen) => (pages.get(seen.url.pathname) ?? (() => ({ status: 404 })))(seen))
  Object.assign(process.env, registry.settings, { PLAT_OUTBOUND_ALLOW: server.host }, settings)
  let count = 0

  /** An address that answers so. */
  function page(answer: ((seen: ReceivedRequest) => ServerReply | undefined) | string): string {
    const path = `/page-${count++}/module.json`
    pages.set(path, typeof answer === 'string' ? () => ({ status: 200, body: answer }) : answer)
    return `${server.url}${path}`
  }

  async function close(): Promise<void> {
    await server[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  }

  return { ...registry, page, close }
}
