import { ArrowUpCircle, Download, ExternalLink, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { InstallDialog } from './install-dialog.tsx'
import styles from './modules.module.css'
import { refreshModules } from '../../api/query.ts'
import { isServing, isUnderWay, type ModuleEntry } from './use-modules.ts'
import { usePageOf } from './use-page-of.ts'

interface ModuleActionsProps {
  entry: ModuleEntry
  /** The id of the module's name, which distinguishes the buttons of rows. */
  describedBy: string
  /** Whether to offer all actions or the main one. */
  isWhole?: boolean
  onBegun: (jobId: string) => void
}

/** The actions that the module's state and the user's permissions allow. */
export function ModuleActions({ entry, describedBy, isWhole = false, onBegun }: ModuleActionsProps) {
  const [asked, setAsked] = useState<'install' | 'uninstall'>()
  const mayInstall = useHasPermission('modules:install')
  const page = usePageOf(entry)
  const { id, name, offer, installed } = entry
  const isFree = installed === undefined || !isUnderWay(installed)
  const close = () => setAsked(undefined)
  const uninstall = async () => {
    const { jobId } = await unwrap(api.DELETE('/api/v1/modules/{id}', { params: { path: { id } } }))
    void refreshModules()
    onBegun(jobId)
  }
  const described = { 'aria-describedby': describedBy }
  return (
    <div className={styles['actions']}>
      {page !== undefined && installed && isServing(installed) && (
        <ButtonLink to="/modules/$moduleId/$" params={page} icon={ExternalLink} {...described}>
          Open
        </ButtonLink>
      )}
      {mayInstall && isFree && installed === undefined && (
        <Button icon={Download} onClick={() => setAsked('install')} {...described}>
          Install
        </Button>
      )}
      {mayInstall && isFree && installed && (isWhole || offer?.updateAvailable) && (
        <Button icon={ArrowUpCircle} onClick={() => setAsked('install')} {...described}>
          {offer?.updateAvailable ? `Upgrade to ${offer.version}` : 'Install another version'}
        </Button>
      )}
      {mayInstall && isFree && installed && isWhole && (
        <Button icon={Trash2} onClick={() => setAsked('uninstall')} {...described}>
          Uninstall
        </Button>
      )}
      <InstallDialog entry={entry} isOpen={asked === 'install'} onClose={close} onBegun={onBegun} />
      <Confirm
        isOpen={asked === 'uninstall'}
        onClose={close}
        title={`Uninstall ${name}?`}
        description="Removes its pages, API, navigation entries and background jobs. Data that it stored elsewhere remains."
        confirmLabel="Uninstall"
        onConfirm={uninstall}
      />
    </div>
  )
}
