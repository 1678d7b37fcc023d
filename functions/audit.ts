import { addAuditEntry, exportAudit, getAuditCheckpoint, listAuditEntries, verifyAudit } from '@platform/contract/audit'
import * as Audit from '@platform/core/audit/audit'
import { result, downloadHeaders } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

const mediaTypes = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }

export const handler = serve(
  route(addAuditEntry, async ({ caller, body }) => {
    await Audit.appendEntry(caller, body)
    return result(204)
  }),
  route(listAuditEntries, async ({ caller, query }) => result(200, await Audit.list(caller, query))),
  route(exportAudit, async ({ caller, query }) => {
    const { text, next, checkpoint } = await Audit.exportPage(caller, query)
    const nextPage = next === undefined ? next : `${exportAudit.path}?format=${query.format}&after=${next}`
    const headers = downloadHeaders(`audit.${query.format}`, mediaTypes[query.format], nextPage)
    return result(200, text, { ...headers, ...(checkpoint !== undefined && { 'audit-checkpoint': checkpoint }) })
  }),
  route(getAuditCheckpoint, async ({ caller }) => result(200, await Audit.checkpoint(caller))),
  route(verifyAudit, async ({ caller, query }) => result(200, await Audit.verify(caller, query))),
)
