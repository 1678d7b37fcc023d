import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { refreshModules } from '../../api/query.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { EventChoices, saveAllowedEvents } from './module-events.tsx'
import styles from './modules.module.css'
import { installedQuery, type ModuleEntry } from './use-modules.ts'
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
  const [allowed, setAllowed] = useState<string[]>([])
  const mayAllow = useHasPermission('users:admin')
  const declaredEvents = release?.events ?? []
  const verb = installed === undefined ? 'Install' : 'Upgrade'
  const install = async (version: string) => {
    const body = version === '' ? {} : { version }
    const call = api.POST('/api/v1/modules/{id}/install', { params: { path: { id } }, body })
    const { jobId, events } = await unwrap(call)
    const accepted = allowed.filter((type) => events.includes(type))
    // An empty list is also sent, because otherwise an earlier decision would apply to the reinstalled module.
    if (mayAllow && events.length > 0 && installed === undefined) await saveAllowedEvents(id, accepted)
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
        {declaredEvents.length > 0 && mayAllow && installed === undefined && (
          <EventChoices declared={declaredEvents} allowed={allowed} onChange={setAllowed} />
        )}
        {declaredEvents.length > 0 && installed && (
          <p>Events that the new version declares in addition are not sent until you allow them in its details.</p>
        )}
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
  const [accepted, setAccepted] = useState<Schemas['InstallAccepted']>()
  const mayAllow = useHasPermission('users:admin')
  const { data: modules } = useQuery(installedQuery)
  const finish = (installation: Schemas['InstallAccepted']) => {
    setAccepted(undefined)
    onClose()
    onStarted(installation)
  }
  const install = async ({ imageRef = '', manifestUrl = '' }: FormValues) => {
    const optionalFields = manifestUrl.trim() === '' ? {} : { manifestUrl: manifestUrl.trim() }
    const installation = await unwrap(
      api.POST('/api/modules/install', { body: { imageRef: imageRef.trim(), ...optionalFields } }),
    )
    void refreshModules()
    // For an upgrade, the user allows events in the details of the module.
    const isUpgrade = modules?.items.some(({ id }) => id === installation.moduleId) === true
    if (!mayAllow || installation.events.length === 0 || isUpgrade) return finish(installation)
    // Resets an earlier decision, which would apply to the reinstalled module if the user closed the dialog.
    await saveAllowedEvents(installation.moduleId, [])
    setAccepted(installation)
  }
  if (accepted) return <EventsDialog accepted={accepted} onClose={() => finish(accepted)} />
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

interface EventsDialogProps {
  accepted: Schemas['InstallAccepted']
  onClose: () => void
}

/** Asks for the events separately, because they are known only after the platform has read the image. */
function EventsDialog({ accepted: { moduleId, events }, onClose }: EventsDialogProps) {
  const [allowed, setAllowed] = useState<string[]>([])
  const save = async () => {
    if (allowed.length > 0) await saveAllowedEvents(moduleId, allowed)
    onClose()
  }
  return (
    <Dialog isOpen onClose={onClose} title={`Events for ${moduleId}`} description="The installation has started.">
      <Form submitLabel="Continue" onSubmit={save} hasDraft={false}>
        <EventChoices declared={events} allowed={allowed} onChange={setAllowed} />
      </Form>
    </Dialog>
  )
}
