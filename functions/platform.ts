import {
  createOrganisation,
  getOrganisationSettings,
  getOrganisationUsage,
  listOrganisations,
  updateOrganisation,
  updateOrganisationSettings,
} from '@platform/contract/organisation'
import { getPlatformSettings, updatePlatformSettings } from '@platform/contract/platform-settings'
import * as Settings from '@platform/core/accounts/organisation-settings'
import * as Organisation from '@platform/core/accounts/organisation'
import * as PlatformSettings from '@platform/core/platform/settings'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listOrganisations, async ({ query }) => result(200, await Organisation.list(query))),
  route(createOrganisation, async ({ caller, body }) => result(201, await Organisation.create(caller, body))),
  route(updateOrganisation, async ({ caller, params, body }) =>
    result(200, await Organisation.update(caller, params.id, body)),
  ),
  route(getOrganisationUsage, async ({ caller }) => result(200, await Organisation.readUsage(caller))),
  route(getOrganisationSettings, async ({ caller }) => result(200, await Settings.read(caller))),
  route(getPlatformSettings, async () => result(200, await PlatformSettings.read())),
  route(updatePlatformSettings, async ({ caller, body }) => result(200, await PlatformSettings.update(caller, body))),
  route(updateOrganisationSettings, async ({ caller, body }) => result(200, await Settings.update(caller, body))),
)
