import { ArrowUpCircle, Download, ExternalLink, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { refreshModules } from '../../api/query.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { InstallDialog } from './install-dialogs.tsx'
import styles from './modules.module.css'
import { isServing, hasOperation, type ModuleEntry, usePageOf } from './use-modules.ts'

interface ModuleActionsProps {
  entry: ModuleEntry
  /** Id of the element with the module's name, which distinguishes the buttons of different rows. */
  describedBy: string
  /** Whether to show all actions or only the main one. */
  showsAll?: boolean
  onStarted: (jobId: string) => void
}

/** The actions that the state of the module and the permissions of the user allow. */
export function ModuleActions({ entry, describedBy, showsAll = false, onStarted }: ModuleActionsProps) {
  const [openDialog, setOpenDialog] = useState<'install' | 'uninstall'>()
  const mayInstall = useHasPermission('modules:install')
  const page = usePageOf(entry)
  const { id, name, release, installed } = entry
  const isIdle = installed === undefined || !hasOperation(installed)
  const close = () => setOpenDialog(undefined)
  const uninstall = async () => {
    const { jobId } = await unwrap(api.DELETE('/api/v1/modules/{id}', { params: { path: { id } } }))
    void refreshModules()
    onStarted(jobId)
  }
  const descriptionAttributes = { 'aria-describedby': describedBy }
  return (
    <div className={styles['actions']}>
      {page !== undefined && installed && isServing(installed) && (
        <ButtonLink to="/modules/$moduleId/$" params={page} icon={ExternalLink} {...descriptionAttributes}>
          Open
        </ButtonLink>
      )}
      {mayInstall && isIdle && installed === undefined && (
        <Button icon={Download} onClick={() => setOpenDialog('install')} {...descriptionAttributes}>
          Install
        </Button>
      )}
      {mayInstall && isIdle && installed && (showsAll || release?.updateAvailable) && (
        <Button icon={ArrowUpCircle} onClick={() => setOpenDialog('install')} {...descriptionAttributes}>
          {release?.updateAvailable ? `Upgrade to ${release.version}` : 'Install another version'}
        </Button>
      )}
      {mayInstall && isIdle && installed && showsAll && (
        <Button icon={Trash2} onClick={() => setOpenDialog('uninstall')} {...descriptionAttributes}>
          Uninstall
        </Button>
      )}
      <InstallDialog entry={entry} isOpen={openDialog === 'install'} onClose={close} onStarted={onStarted} />
      <Confirm
        isOpen={openDialog === 'uninstall'}
        onClose={close}
        title={`Uninstall ${name}?`}
        description="Removes its pages, API, navigation entries and background jobs. Data that it stored elsewhere remains."
        confirmLabel="Uninstall"
        onConfirm={uninstall}
      />
    </div>
  )
}
