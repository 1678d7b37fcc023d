import { api, type Schemas, unwrap } from '../../api/client.ts'
import { refreshModules } from '../../api/query.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import styles from './modules.module.css'
import type { ModuleEntry } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface InstallDialogProps {
  entry: ModuleEntry
  isOpen: boolean
  onClose: () => void
  /** Called with the id of the installation job. */
  onStarted: (jobId: string) => void
}

/** Confirms an installation or upgrade. The user can choose a version. */
export function InstallDialog({
  entry: { id, name, release, installed },
  isOpen,
  onClose,
  onStarted,
}: InstallDialogProps) {
  const verb = installed === undefined ? 'Install' : 'Upgrade'
  const install = async (version: string) => {
    const body = version === '' ? {} : { version }
    const call = api.POST('/api/v1/modules/{id}/install', { params: { path: { id } }, body })
    const { jobId } = await unwrap(call)
    void refreshModules()
    onClose()
    onStarted(jobId)
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
      <Form submitLabel={verb} actions={<CancelButton />} onSubmit={({ version = '' }) => install(version.trim())}>
        {release && <VerifiedBadge {...release} />}
        {release?.verified === false && (
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
          placeholder={release?.version ?? ''}
          hint={release ? `Defaults to the newest version, ${release.version}.` : 'Defaults to the newest version.'}
        />
      </Form>
    </Dialog>
  )
}

interface ImageDialogProps {
  isOpen: boolean
  onClose: () => void
  onStarted: (accepted: Schemas['InstallAccepted']) => void
}

/** Installs a module by its image. Errors of the image or its manifest are shown in the form. */
export function ImageDialog({ isOpen, onClose, onStarted }: ImageDialogProps) {
  const install = async ({ imageRef = '', manifestUrl = '' }: FormValues) => {
    const optional = manifestUrl.trim() === '' ? {} : { manifestUrl: manifestUrl.trim() }
    const accepted = await unwrap(
      api.POST('/api/modules/install', { body: { imageRef: imageRef.trim(), ...optional } }),
    )
    void refreshModules()
    onClose()
    onStarted(accepted)
  }
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Install by image"
      description="For modules that are not in the catalog. Upgrades the module if it is installed."
    >
      <Form submitLabel="Install" actions={<CancelButton />} onSubmit={install}>
        <TextField
          name="imageRef"
          label="Image"
          isMono
          required
          autoComplete="off"
          placeholder="registry.example.com/modules/hello:1.0.0"
          hint="Including registry and tag or digest."
        />
        <TextField
          name="manifestUrl"
          label="Manifest URL"
          isOptional
          isMono
          type="url"
          autoComplete="off"
          placeholder="https://example.com/module.json"
          hint="Defaults to the module.json in the image."
        />
      </Form>
    </Dialog>
  )
}
