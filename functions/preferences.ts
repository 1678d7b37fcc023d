import {
  createSavedFilter,
  deleteSavedFilter,
  getDashboardLayout,
  listSavedFilters,
  updateDashboardLayout,
} from '@platform/contract/preference'
import * as Layout from '@platform/core/accounts/dashboard-layout'
import * as SavedFilter from '@platform/core/accounts/saved-filter'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(getDashboardLayout, async ({ caller }) => {
    const savedLayout = await Layout.read(caller)
    return savedLayout === undefined ? result(204) : result(200, savedLayout.layout, { etag: savedLayout.etag })
  }),
  route(updateDashboardLayout, async ({ caller, body, headers }) =>
    result(204, undefined, { etag: await Layout.save(caller, body, headers['if-match']) }),
  ),
  route(listSavedFilters, async ({ caller }) => result(200, await SavedFilter.list(caller))),
  route(createSavedFilter, async ({ caller, body }) => result(201, await SavedFilter.create(caller, body))),
  route(deleteSavedFilter, async ({ caller, params }) => {
    await SavedFilter.remove(caller, params.id)
    return result(204)
  }),
)
