import { api, unwrap } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import styles from './modules.module.css'
import { refreshModules } from '../../api/query.ts'
import { type ModuleEntry } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface InstallDialogProps {
  entry: ModuleEntry
  isOpen: boolean
  onClose: () => void
  /** Called with the job of the installation. */
  onBegun: (jobId: string) => void
}

/** Confirms an installation or upgrade, optionally of a chosen version. */
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
          ? 'The module runs isolated from the platform. All users can use it.'
          : `Version ${installed.version} serves requests until the new one is healthy, and stays if it fails.`
      }
    >
      <Form
        submitLabel={verb}
        actions={<Button onClick={onClose}>Cancel</Button>}
        onSubmit={({ version = '' }) => install(version.trim())}
      >
        {offer && <VerifiedBadge {...offer} />}
        {offer?.verified === false && (
          <p className={styles['warning']}>
            Images must be signed by a trusted key, unless the platform’s settings allow unsigned ones.
          </p>
        )}
        <TextField
          name="version"
          label="Version"
          isOptional
          isMono
          autoComplete="off"
          placeholder={offer?.version ?? ''}
          hint={offer ? `Defaults to the newest version, ${offer.version}.` : 'Defaults to the newest version.'}
        />
      </Form>
    </Dialog>
  )
}
