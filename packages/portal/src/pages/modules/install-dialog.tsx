import { api, unwrap } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import styles from './modules.module.css'
import { type ModuleEntry, refreshModules } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface InstallDialogProps {
  entry: ModuleEntry
  isOpen: boolean
  onClose: () => void
  /** The platform has begun: by this job. */
  onBegun: (jobId: string) => void
}

/** Asks before a module is installed or brought to another version, and for the version. */
export function InstallDialog({ entry: { id, name, offer, installed }, isOpen, onClose, onBegun }: InstallDialogProps) {
  const verb = installed === undefined ? 'Install' : 'Upgrade'
  const install = async (version: string) => {
    const body = version === '' ? {} : { version }
    const call = api.POST('/api/v1/modules/{id}/install', { params: { path: { id } }, body })
    const { jobId } = await unwrap(call)
    void refreshModules()
    onClose()
    onBegun(jobId)
  }
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={`${verb} ${name}?`}
      description={
        installed === undefined
          ? 'Its program runs apart from the platform. Everybody who may sign in can use what it adds.'
          : `Version ${installed.version} answers until the new one is healthy. If that fails, it stays.`
      }
    >
      <Form
        submitLabel={verb}
        actions={<Button onClick={onClose}>Keep as it is</Button>}
        onSubmit={({ version = '' }) => install(version.trim())}
      >
        {offer && <VerifiedBadge {...offer} />}
        {offer?.verified === false && (
          <p className={styles['warning']}>
            The platform refuses images that no trusted key has signed, unless its settings allow them.
          </p>
        )}
        <TextField
          name="version"
          label="Version"
          isOptional
          isMono
          autoComplete="off"
          placeholder={offer?.version ?? ''}
          hint={offer ? `Empty: the newest one, ${offer.version}.` : 'Empty: the newest one.'}
        />
      </Form>
    </Dialog>
  )
}
