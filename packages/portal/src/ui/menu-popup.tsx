import { Menu as Base } from '@base-ui/react/menu'
import { classes } from './class-names.ts'
import type { MenuAction, MenuProps } from './menu.tsx'
import styles from './menu.module.css'

/** A menu that is open when it is mounted. It replaces the button that loaded it. */
export function OpenedMenu({ trigger, heading, actions }: MenuProps) {
  return (
    <Base.Root defaultOpen>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className={styles['positioner']} sideOffset={6} align="end">
          <Base.Popup className={styles['popup']}>
            {heading !== undefined && <div className={styles['heading']}>{heading}</div>}
            {actions.map((action, index) =>
              action === 'separator' ? (
                // oxlint-disable-next-line react/no-array-index-key -- separators have no state and keep their order
                <Base.Separator key={`separator ${index}`} className={styles['separator']} />
              ) : (
                <MenuItem key={action.label} {...action} />
              ),
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

const MenuItem = ({ label, icon: Icon, onSelect, isDanger = false, isDisabled = false }: MenuAction) => (
  <Base.Item className={classes(styles['item'], isDanger && styles['danger'])} onClick={onSelect} disabled={isDisabled}>
    {Icon && <Icon size={16} aria-hidden />}
    {label}
  </Base.Item>
)
