import { useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { CheckField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'

export interface UpdateRequest {
  action: Schemas['UpdateRequest']['action']
  from: string
  to: string
}

interface UpdateDialogProps {
  request: UpdateRequest
  onClose: () => void
  onStarted: (jobId: string) => void
}

const texts = {
  apply: {
    title: ({ to }: UpdateRequest) => `Update the platform to ${to}?`,
    text: ({ from }: UpdateRequest) =>
      `The new version is deployed next to ${from}, tested, and takes over in three steps. If a step fails, the platform rolls back to ${from} automatically.`,
    verb: 'Update',
  },
  rollback: {
    title: ({ to }: UpdateRequest) => `Roll back to ${to}?`,
    text: ({ from, to }: UpdateRequest) =>
      `${to} replaces ${from}. Data that ${from} has written remains: a rollback does not repair damaged data.`,
    verb: 'Roll back',
  },
} as const

/** Confirms an update. A second confirmation is required while jobs are running. */
export function UpdateDialog({ request, onClose, onStarted }: UpdateDialogProps) {
  const [hasJobs, setHasJobs] = useState(false)
  const [isForced, setIsForced] = useState(false)
  const { title, text, verb } = texts[request.action]
  const start = async () => {
    const body = { action: request.action, targetVersion: request.to, ...(isForced && { force: true }) }
    try {
      const { jobId } = await unwrap(api.PUT('/api/v1/platform/updates/apply', { body }))
      void queries.invalidateQueries({ queryKey: ['updates', 'history'] })
      onClose()
      onStarted(jobId)
    } catch (error) {
      if (isApiError(error, 'active_jobs')) setHasJobs(true)
      if (isApiError(error, 'update_in_progress')) void queries.invalidateQueries({ queryKey: ['updates', 'history'] })
      throw error
    }
  }
  return (
    <Dialog isOpen onClose={onClose} title={title(request)} description={text(request)}>
      <Form submitLabel={verb} actions={<CancelButton />} onSubmit={start}>
        {hasJobs && (
          <CheckField
            label="Update even if jobs are running"
            hint="Running jobs continue and report to the new version."
            checked={isForced}
            onChange={setIsForced}
          />
        )}
      </Form>
    </Dialog>
  )
}
