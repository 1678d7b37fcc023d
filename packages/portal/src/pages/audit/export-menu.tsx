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

/** Saves the whole trail as a file; the filters do not narrow it, for a chain with gaps proves nothing. */
export function ExportMenu() {
  const [isBusy, setIsBusy] = useState(false)
  const save = async ({ name, type }: Format) => {
    setIsBusy(true)
    try {
      saveFile(`audit-trail.${name}`, await fetchParts(name), type)
      showToast('The audit trail was saved')
    } catch (error) {
      showErrorToast('The audit trail could not be saved', error)
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
      heading="The whole trail, whatever the filters show"
      actions={formats.map((format) => ({
        label: format.label,
        onSelect: () => void save(format),
        isDisabled: isBusy,
      }))}
    />
  )
}

/** The file in its parts: each names the next one. */
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

/** The address of the next part, which is one of the export's: a header leads nowhere else. */
const nextOf = (link: string): string | undefined =>
  /<(?:https?:\/\/[^/>]+)?(\/api\/v1\/platform\/audit\/export\?[^>]*)>;\s*rel="next"/.exec(link)?.[1]
