import { createOrganisation, listOrganisations } from '@platform/contract/organisation'
import * as Organisation from '@platform/core/accounts/organisation'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listOrganisations, async ({ query }) => result(200, await Organisation.list(query))),
  route(createOrganisation, async ({ caller, body }) => result(201, await Organisation.create(caller, body))),
)
