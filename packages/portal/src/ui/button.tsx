import { Link, type LinkProps } from '@tanstack/react-router'
import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import styles from './button.module.css'
import { classes } from './class-names.ts'

/** How much a button stands out: one `primary` a page or dialog, `danger` for what cannot be undone. */
export type ButtonVariant = 'default' | 'primary' | 'danger' | 'quiet'

interface Looks {
  look?: ButtonVariant
  icon?: LucideIcon | undefined
}

const classOf = (look: ButtonVariant): string => classes(styles['button'], look !== 'default' && styles[look])

type ButtonProps = ComponentProps<'button'> & Looks & { isBusy?: boolean | undefined }

/** A button. While it is busy it says so, keeps the focus, and does nothing. */
export function Button({ look = 'default', icon: Icon, isBusy = false, children, className, ...rest }: ButtonProps) {
  const busy = isBusy && { 'aria-disabled': true, 'aria-busy': true, onClick: stop }
  return (
    <button type="button" {...rest} {...busy} className={classes(classOf(look), className)}>
      {isBusy ? <Spinner /> : Icon && <Icon size={16} aria-hidden />}
      {children}
    </button>
  )
}

const stop = (event: { preventDefault: () => void }): void => event.preventDefault()

type IconButtonProps = Omit<ComponentProps<'button'>, 'children'> & {
  label: string
  icon: LucideIcon
  isBusy?: boolean
}

/** A button that is an icon only; its label is told to assistive technology and shown as a tooltip. */
export function IconButton({ label, icon: Icon, isBusy = false, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={classes(styles['button'], styles['quiet'], styles['square'], className)}
    >
      {isBusy ? <Spinner /> : <Icon size={18} aria-hidden />}
    </button>
  )
}

type ButtonLinkProps = LinkProps & Looks & { children: ReactNode }

/** A link to another page of the portal that looks like a button. */
export const ButtonLink = ({ look = 'default', icon: Icon, children, ...rest }: ButtonLinkProps) => (
  <Link {...rest} className={classOf(look)}>
    {Icon && <Icon size={16} aria-hidden />}
    {children}
  </Link>
)

/** Shows that something is under way. What it is, the words beside it say. */
export const Spinner = () => <LoaderCircle size={16} aria-hidden className={styles['spinning']} />
