"""The facts that all rooms share, each said in one file.

    field, fields         the fields of a case: kind, meaning, range, default, heading
    device_keys           the parameters of modelled devices, and the fields that change one
    workload, workloads   what each workload does, may lose, and needs
    filesystem, filesystems    what each filesystem is: options, tools, hazards, reader of its disk
    disk_map              what a filesystem's own tools report about an unmounted disk
    hazards               what a power cut may destroy, and by which cause
    software              what a case has where it names another time
    figures               the named numbers of a case, each with its unit, source and SQL
    architecture          the processors of guests

A filesystem, a workload or a figure is added here, and no other room lists them by name.
"""
