import { listCatalog, scanCatalog } from '@platform/contract/catalog'
import {
  getModule,
  installImage,
  installModule,
  listModules,
  listOrganisationModules,
  setOrganisationModule,
  uninstallImage,
  uninstallModule,
} from '@platform/contract/module'
import * as Catalog from '@platform/core/modules/catalog/list'
import { listConsents, setConsent } from '@platform/core/modules/consent'
import * as Module from '@platform/core/modules/module'
import { uninstall } from '@platform/core/modules/uninstall'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

/** Imports the installation code on demand, because other requests do not need its image reader. */
const importInstall = () => import('@platform/core/modules/install')

export const handler = serve(
  route(listCatalog, async ({ query }) => result(200, await Catalog.list(query))),
  route(scanCatalog, async ({ caller }) => result(202, await Catalog.scan(caller))),
  route(listModules, async ({ caller }) => result(200, await Module.listFor(caller))),
  route(getModule, async ({ caller, params }) => result(200, await Module.readFor(caller, params.id))),
  route(installModule, async ({ caller, params, body }) =>
    result(202, await (await importInstall()).installFromCatalog(caller, params.id, body)),
  ),
  route(uninstallModule, async ({ caller, params }) => result(202, await uninstall(caller, params.id))),
  route(installImage, async ({ caller, body }) =>
    result(202, await (await importInstall()).installFromImage(caller, body)),
  ),
  route(uninstallImage, async ({ caller, params }) => result(202, await uninstall(caller, params.id))),
  route(listOrganisationModules, async ({ caller }) => result(200, await listConsents(caller))),
  route(setOrganisationModule, async ({ caller, params, body }) =>
    result(200, await setConsent(caller, params.id, body)),
  ),
)
