// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stops a guest of arm64 at one exact instruction: what is written to the parameter `now` halts the
 * processor's timer and tells QEMU's pvpanic device, on which QEMU pauses (-action panic=pause).
 *
 * On x86 the agent does both itself, by ports and the registers of the local APIC. Here the timer
 * is a register that only the kernel may write (CNTKCTL_EL1.EL0VTEN is 0). Why no timer may run is
 * said in agent/src/lab/channel/hardware/x86_64.rs. Nobody else touches the device: its
 * driver is not loaded.
 */
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pci.h>

#include <asm/barrier.h>
#include <asm/sysreg.h>

/* docs/specs/pvpanic.txt of QEMU: the device, and what its only register understands. */
#define DEVICE_ID 0x0011
#define PANICKED 1
/* CNTV_CTL_EL0 of the Arm ARM: the timer's own switch. */
#define TIMER_ON 1

static struct pci_dev *device;
static void __iomem *events;

static int stop_now(const char *value, const struct kernel_param *parameter)
{
	unsigned long flags;
	u64 control;

	if (!events)
		return -ENODEV;
	local_irq_save(flags);
	control = read_sysreg(cntv_ctl_el0);
	write_sysreg(control & ~(u64)TIMER_ON, cntv_ctl_el0);
	isb();
	writeb(PANICKED, events);
	/* Here the machine is stopped, until the host continues it. */
	mb();
	write_sysreg(control, cntv_ctl_el0);
	isb();
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops stop_ops = { .set = stop_now };
module_param_cb(now, &stop_ops, NULL, 0200);
MODULE_PARM_DESC(now, "a write stops the machine");

static int __init guest_stop_init(void)
{
	int error = -ENODEV;

	device = pci_get_device(PCI_VENDOR_ID_REDHAT, DEVICE_ID, NULL);
	if (!device)
		return error;
	error = pci_enable_device(device);
	if (error)
		goto put;
	events = pci_iomap(device, 0, 0);
	if (events)
		return 0;
	error = -ENOMEM;
	pci_disable_device(device);
put:
	pci_dev_put(device);
	return error;
}

static void __exit guest_stop_exit(void)
{
	pci_iounmap(device, events);
	pci_disable_device(device);
	pci_dev_put(device);
}

module_init(guest_stop_init);
module_exit(guest_stop_exit);
MODULE_DESCRIPTION("stops a guest of the lab at an exact instruction");
MODULE_LICENSE("GPL");
