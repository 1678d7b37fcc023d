import { docsSecurityPolicy } from '@platform/contract/docs/policy'
import { getEventCatalog } from '@platform/contract/event'
import { getDocs, getKeys, getManifestSchema, getOpenApi, getRelayProgram } from '@platform/contract/meta'
import { readPublicKeys } from '@platform/core/signing/published-keys'
import { result } from '@platform/http/result'
import { loadAsset, jsonOf, shortCacheHeaders } from '@platform/http/asset'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

const EventCatalog = getEventCatalog.responses[200].content['application/json'].schema

export const handler = serve(
  route(getOpenApi, async () => {
    const document = await loadAsset('openapi.json')
    return result(200, jsonOf(document), document.headers)
  }),
  route(getDocs, async () => {
    const page = await loadAsset('docs.html')
    return result(200, page.text, { ...page.headers, 'content-security-policy': await docsSecurityPolicy(page.text) })
  }),
  route(getEventCatalog, async () => {
    const catalog = await loadAsset('event-catalog.json')
    return result(200, EventCatalog.parse(jsonOf(catalog)), {
      ...catalog.headers,
      'cache-control': 'private, max-age=60',
    })
  }),
  route(getManifestSchema, async () => {
    const schema = await loadAsset('module-schema.json')
    return result(200, jsonOf(schema), schema.headers)
  }),
  route(getKeys, async () => result(200, await readPublicKeys(), shortCacheHeaders)),
  route(getRelayProgram, async () => {
    const program = await loadAsset('relay.mjs')
    return result(200, program.text, program.headers)
  }),
)
