import { ArrowUpCircle, Download, ExternalLink, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { InstallDialog } from './install-dialog.tsx'
import styles from './modules.module.css'
import { isServing, isUnderWay, type ModuleEntry, refreshModules } from './use-modules.ts'
import { usePageOf } from './use-page-of.ts'

interface ModuleActionsProps {
  entry: ModuleEntry
  /** The element that names the module: it tells equal buttons apart. */
  describedBy: string
  /** Whether everything is offered, or what comes first. */
  isWhole?: boolean
  onBegun: (jobId: string) => void
}

/** What can be done with a module just now, by this user. */
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
        description="Its pages, its API, its entries in the navigation and its background jobs go. What it has stored elsewhere is its own business."
        confirmLabel="Uninstall"
        onConfirm={uninstall}
      />
    </div>
  )
}
