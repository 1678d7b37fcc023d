import { Download } from 'lucide-react'
import { useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { fetchInSession } from '../../api/session.ts'
import { Button } from '../../ui/button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { showToast, showErrorToast } from '../../ui/toast.tsx'

const formats = [
  { name: 'ndjson', label: 'As NDJSON', type: 'application/x-ndjson' },
  { name: 'csv', label: 'As CSV', type: 'text/csv' },
] as const
type Format = (typeof formats)[number]

/** Saves the whole trail and ignores the filters, because a chain with gaps proves nothing. */
export function ExportMenu() {
  const [isBusy, setIsBusy] = useState(false)
  const save = async ({ name, type }: Format) => {
    setIsBusy(true)
    try {
      saveFile(`audit-trail.${name}`, await fetchParts(name), type)
      showToast('Audit trail exported')
    } catch (error) {
      showErrorToast('Failed to export the audit trail', error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Menu
      trigger={
        <Button icon={Download} isBusy={isBusy}>
          Export
        </Button>
      }
      heading="The whole trail, without filters"
      actions={formats.map((format) => ({
        label: format.label,
        onSelect: () => void save(format),
        isDisabled: isBusy,
      }))}
    />
  )
}

/** Follows the links to the last page. */
async function fetchParts(format: Format['name']): Promise<string[]> {
  const parts: string[] = []
  let next: string | undefined = `/api/v1/platform/audit/export?format=${format}`
  while (next !== undefined) {
    const response = await fetchPart(next)
    parts.push(await response.text())
    next = nextOf(response.headers.get('link') ?? '')
  }
  return parts
}

async function fetchPart(path: string): Promise<Response> {
  const response = await fetchInSession(new Request(new URL(path, location.origin))).catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})), response.headers)
  return response
}

/** The next page. Only paths of the export are followed. */
const nextOf = (link: string): string | undefined =>
  /<(?:https?:\/\/[^/>]+)?(\/api\/v1\/platform\/audit\/export\?[^>]*)>;\s*rel="next"/.exec(link)?.[1]
